"""Logs of treatments: the files of a trial, read, checked and put on the records of a declared domain.

values        when two cells hold the same value: 1, 1.0, true and "1" do
binning       a feature's declared levels or cuts
source        LogSource: what a study says about its log
data_section  the same, read from a study file's table [data]
bad_rows      LogError, and the list of all bad rows
reading       a file or data frame as a table
cells         a column as codes or numbers
joining       rows of three tables matched, by patient or by row
tables        LogTables: one table, or three
treatments    which treatment each row got
rewards       what came of it: weighted outcomes, and what is done where one is missing
outcomes      what cannot be an outcome: an id, what was known before treatment, a censored time
propensities  how probable the treatment was: known or estimated
decisions     these three, joined
frame         read_log: from files to a data frame for evaluate_log
trial         load_log: from a LogSource to arrays
guess_names, guess_summary, guess_roles, guess_features   what policysim init takes a file's columns for
study_text, toml_writing   the study file that it writes

values, binning, source and data_section import nothing heavy.
"""
