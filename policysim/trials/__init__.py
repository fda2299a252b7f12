"""What a log says about policies: those learned from one part of it, and those made elsewhere.

estimators       what each row adds to an estimate: importance weights, IPS, SNIPS, doubly robust; what may be wrong
estimate_value   the estimators, an entry each; models fitted without the rows that they predict
arms             each arm given to everyone, and a policy against the one that did best on other folds
contrasts        arms against each other: which is the best
splits           random splits of a log, and what a policy is worth on one: made from one part, measured on the rest
trial_columns    what all splits say of each policy: a row for each epsilon and group
overlap          groups of patients to whom the log never gives an action, or who have no outcome under it
diagnostics      balance of the arms, propensities; doubts about a log
evidence         what a log can show: heterogeneity, power and E-values
trial_findings   what a comparison shows: options with letters, differences with verdicts, who is harmed, what leaks
trial_words      the words of these findings; trial_tables: the tables behind
trial_report     the report, with its figures
evaluate_log     what a policy is worth to the patients of a log; log_to_evaluate: such logs, of a study or a file
outside_policy   a policy made elsewhere
evaluation_words what `policysim evaluate` prints
"""
