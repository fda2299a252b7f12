"""What every question has in common, whatever it is about.

question   the protocol: a question knows its study, the options that it refuses, and how to answer
answer     what comes out of it: sentences, tables, drawings, pages, and what the manifest says
data_table the data of a drawing as a small table of text
progress   how work tells how much of it there is, and how much is done

`policysim.report` makes screen, JSON document, page and folder of any answer.
"""
