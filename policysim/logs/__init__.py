"""Logs of treatments: the files of a trial, read, checked and put on the records of a declared domain.

log_source      LogSource: what a study says about its log; a feature's declared levels or cuts
data_reader     the same, read from a study file's table [data] (data_keys.toml declares its keys)
log_tables      a file or data frame as a table; three tables joined, by patient or by row
treatments      which treatment each row got, how probable it was (known or estimated), and what came of it
outcomes        which columns are outcomes, and how they are read
censoring       outcomes that take time, of patients whose follow-up may end before: Kaplan and Meier
counted_log     a log that is counted and not kept, so that it may be in many files and larger than memory
kinds           the counts themselves, to which more are added
outcome_sums    exact sums of outcomes that have too many values to be counted
load_log        load_log: from a LogSource to arrays; what was decided for each patient
read_log        read_log: from files to a data frame for evaluate_log
log_frame       such a data frame, read and checked: action, reward, propensity and covariates
outcome_models  models of the reward, by name, from scikit-learn
learners         the model that held-out rows choose, shrunk to the arms' means
guess_columns, column_names   what a file's columns hold, and what their names say
guess_roles, guess_outcome, guess_later, guess_features   what policysim init takes them for, and when it asks
study_text      the study file that it writes

log_source and data_reader import nothing heavy.
"""
