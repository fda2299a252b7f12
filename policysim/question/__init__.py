"""What every question has in common, whatever it is about; it knows no study.

protocol   a question knows its study, the options that it refuses, and how to answer
answer     what comes out of it: sentences, tables, drawings with their data, pages, and what the manifest says
progress   how work tells how much of it there is, and how much is done
neighbours  whether `envs` and `policies` are ours: PyPI has other packages of these names
extras     packages that only some questions need, and the extra to install for each
words      numbers in words, lines of text, and the names that tables share: all patients, groups, the limit's bounds
shown      numbers in the prose of pages, with the number itself beside them for machines

`policysim.report` makes screen, JSON document, page and folder of any answer.
"""
