"""What every question has in common, whatever it is about; it knows no study.

protocol   a question knows its study, the options that it refuses, and how to answer; how work tells its progress
answer     what comes out of it: sentences, tables, drawings with their data, pages, and what the manifest says
words      numbers in words, lines of text, and the names that tables share: all patients, groups, the limit's bounds
shown      numbers in the prose of pages, with the number itself beside them for machines

`policysim.report` makes screen, JSON document, page and folder of any answer.
"""
