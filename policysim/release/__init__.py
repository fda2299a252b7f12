"""What leaves the house: columns of a file randomised row by row, and one private choice from counts.

privatize        columns of a file, or of many, privatised; true counts estimated from what came out
privatize_source what is privatised: a file, or the files of a folder
privatize_part   one file's columns drawn, in this process or by other workers
privatize_stage  where private files appear, together with their note or not at all, and where they are until then
privatize_codes  values of columns as positions among their levels, and back
privatize_note   the note beside a private file, with all that others need
privatize_ledger what was released before from the same data
privatize_screen what people see of it
counts_file      how many people there are for each candidate
select_private   a private choice for each group, what it costs, and how good it is
select_screen    what may be published, and apart from it what may not
"""
