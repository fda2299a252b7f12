"""What was asked: the study, its file, and the problem made from it; and what every kind of question says of a problem.

declared       Study, of a scenario, a cohort or a log: everything that a comparison depends on
cohort_table   tables of one's own: kinds of patients, and what is expected of each under each treatment
stated_bounds  what a study bounds and forbids, and which policies break it
study_reader   study files, read and checked (declared.py lists their keys; built-in ones are in studies/)
study_problem  from a study to the decision problem: expected utilities, or scores fitted to a log; other priors
sweep          which policies at which epsilon, whose groups, and one table of it all
gain           one treatment for all, what choosing for each gains over it, and the proof of the most that is kept
cells          every number that is printed, looked up by its key; what a template may print; the words of each kind of
               question, from files of findings/, and the six lines that answer first
options_table  the table that answers: which options, which rows; the only place that ranks
certainty      how often an option is better where the numbers are redrawn, and which finding holds
labels         what people call a problem and its parts; what the numbers of a study rest on; what it hides, in words
example_patients  patients with a name, to see what a policy does to one; how losses vary between patients
checks         whether a policy keeps its claim, and whether a mean of patients agrees with the exact value
registration   what `import policysim` does at once: our neighbours are ours, and Gymnasium knows the environments
"""
