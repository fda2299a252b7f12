"""Any answer as screen, JSON document, page and folder; and the same folder made again.

deliver       a question asked, answered, printed, and written: tables, figures, pages from templates/, and the manifest
report        the tables and figures of an answer, in Python
screen        the screen of an answer: its tables, or its texts, in one template of text; what all its templates print
answer_page   the page of an answer: the same, a slider of ε, and figures
manifest      a manifest.json read and checked; the options that change a question's numbers, and the type of each
reproduction  a study run again from its manifest, and compared
differences   cells and statements in which two folders differ
"""
