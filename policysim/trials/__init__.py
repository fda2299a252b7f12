"""What a log says about policies: those learned from one part of it, and those made elsewhere.

estimators       what each row adds to an estimate: importance weights, IPS, SNIPS, doubly robust
estimate_value   the estimators, a class or an entry each; models fitted without the rows that they predict
evaluate_log     the same from a data frame
caveats          what may be wrong with an estimate, in words; log_caveats: with a log
holes            groups of patients to whom the log never gives an action, in raw counts
arms             the arms before any model, and a policy against the best of them
splits           policies from one part of a log, evaluated on the other; means over repeated splits
columns          the comparison of policies on held-out patients, and the table of its columns
heterogeneity    whether there is anything to individualise, tested before any policy
diagnostics      calibration of the scores, balance of the arms, propensities; e_value: how much confounding it takes
power            the least gain that a log shows, the patients it takes, and the gain a mechanism needs
trial_findings   what a comparison found
trial_headline, trial_brief, trial_screen, trial_drawings   what people see of it
trial_question   the same as a question
contraindicated  which treatments the patients of a log may get
evaluated_log, evaluated_policy   a log and a policy made elsewhere, and what the one says about the other
evaluation_question   the same as a question, and what it prints
"""
