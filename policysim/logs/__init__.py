"""Logs of treatments: the files of a trial, read, checked and put on the records of a declared domain.

log_source      LogSource: what a study says about its log, and its keys; nothing heavy is imported
data_section    read_data: a study's table [data], read into a LogSource; features by their levels or cuts
log_tables      a file or data frame as a table; three tables joined, by patient or by row
clusters        villages, wards, several rows of a person: whole clusters in folds, and columns that decide treatment
treatments      which treatment each row got, how probable it was (known or estimated), and what came of it
outcomes        outcomes as numbers or by codes, their weighted sum, and which columns can be the outcome
adjusters       columns that are adjusted for and that no policy sees
incomplete      outcomes of which some are missing or censored, made numbers for all rows; which are observed
censoring       outcomes that take time, of patients whose follow-up may end before: Kaplan-Meier, Aalen-Johansen, Cox
load_log        load_log: from a LogSource to arrays; what was decided for each patient
counted_log     a log that is counted and not kept, so that it may be in many files and larger than memory
kinds           distinct rows of tables in batches; the counts, with exact sums of finely measured outcomes
read_log        read_log: from files to a data frame for evaluate_log
log_frame       such a data frame, read and checked: action, reward, propensity and covariates
outcome_models  models of the reward, by name, from scikit-learn; the one that held-out rows choose
column_names    what the names of columns say
column_summary  the columns of a trial's file: what they hold, what they look like, and as features
init_dialogue   how policysim init asks: by options, on a terminal, or all at once
init_questions  what it needs to know, and the keys of [data] that each answer becomes
study_text      the study file that it writes, of texts in study_text.toml; toml_text: names and values as TOML
"""
