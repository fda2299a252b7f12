"""Studies of source documents: every figure that a source prints beside ours, and where it is wrong.

A study file with the key ``analysis`` is such a study; only `policysim compare` runs it. It holds constants alone:
counts, what the source declares, and its figures in quotes, with the digits printed there and a word on where.

printed   what such a file quotes, read with its mistakes; whether a number of ours is the one printed, to its digits
chances   exact probabilities: a private choice from counts, its privacy loss, and where a single run lies
engine    SourceFindings: a Row per figure with its agreement, the findings, Sections with tables and drawings
document  Document: constants, our figures, facts and drawn tables of a class, in the words of `texts/NAME.toml`
source_question   the documents by name, one read; the question, with its files, screen and JSON

A document is a class in a module, its words, and a name in source_question:

sock_groups      the exponential mechanism on a small and a large group
adult_age_sex    k-ary response on two columns, and what the coins of another report cost
common_disease   the most common value; largest_industry: which tables allow 949 of 1,000 right, a part of it
marital_status   the most common value, with a score that is a thousandth of a count
"""
