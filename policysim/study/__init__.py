"""What was asked: the study, its file, and the problem made from it.

declared       Study, of a scenario or of a log: everything that a comparison depends on
study_file     study files, read and checked (built-in ones in studies/)
study_problem  from a study to the decision problem: expected utilities, or scores fitted to a log
sweep          which policies at which epsilon, and what is gained
basis          what the numbers of a study rest on, and what it hides, in words
registration   the environments' names in Gymnasium
"""
