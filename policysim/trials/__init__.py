"""What a log says about policies: those learned from one part of it, and those made elsewhere.

estimators       what each row adds to an estimate: importance weights, IPS, SNIPS, doubly robust; what may be wrong
estimate_value   the estimators, an entry each; models fitted without the rows that they predict
arms             the arms before any model, and a policy against the one that did best on other folds
trial_columns    policies from one part of a log, measured on the other over repeated splits; the table of its columns
diagnostics      balance of the arms, propensities, groups to whom the log never gives an action; doubts about a log
evidence         what a log can show: heterogeneity, power, E-values, and the gain that a mechanism needs
trial_findings, trial_words, trial_report   what is found in the comparison, its words, and the report
evaluate_log     what a policy is worth to the patients of a log; outside_policy: a policy made elsewhere
evaluation_words   what is printed of it
"""
