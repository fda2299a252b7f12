"""The command evaluate: what a policy made elsewhere is worth to the patients of a log.

evaluated_log     a log, from a study file or a single file, ready to be evaluated on
target            what is evaluated: actions, and their probabilities for the rows of a log
table_policy      a table made elsewhere
catalogue_policy  a policy of the catalogue on the records of a scenario, whose exact value is known
result            Evaluation: arms, value, difference from the best single arm, agreement with the exact value
screen            the same as text
document          the same for --json
"""
