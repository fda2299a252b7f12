"""The study, its file, and the problem made from it; and words about a problem that every kind of report uses.

declared       Study, of a scenario, a cohort or a log: everything that a comparison depends on
cohort_table   tables of your own: kinds of patients, and the mean outcomes of each under each treatment
noisy_cells    a study planned on private cells: what they say, and what their noise costs
stated_bounds  the bounds and contraindications of a study, and the policies that break them
study_reader   study files, read and checked (declared.py lists their keys; built-in ones are in studies/)
study_problem  from a study to the decision problem: expected utilities, or scores fitted to a log; other priors
sweep          policies over epsilon and groups, in one table
gain           the gain of choosing for each patient over the same treatment for everyone, and the proven limit
labels         names of a problem and its parts in words: what it hides, and the source of its numbers
example_patients  patients with a name, as examples; how losses vary between patients
checks         whether a policy keeps its claim, and whether a mean of patients agrees with the exact value
registration   what `import policysim` does at once: our neighbours are ours, and Gymnasium knows the environments
"""
