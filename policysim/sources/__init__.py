"""Studies of source documents: every figure that a source prints beside ours, and where it is wrong.

A study file with the key ``analysis`` is such a study; only `policysim compare` runs it. It holds constants alone:
counts, what the source declares, and its figures in quotes, with the digits printed there and a word on where.

engine           what such a file quotes, a Row per figure with its agreement, the findings; a Document, in the words of
                 `texts/NAME.toml`
documents        the four of them: exact probabilities, what each computes, and the facts that its words name
source_question  reads one; the question, with its files, screen and JSON
"""
