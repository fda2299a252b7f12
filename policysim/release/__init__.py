"""What leaves the house: columns of a file randomised row by row, and one private choice from counts.

ledger           what was released before from the same rows, and the one transaction in which anything is released
privatize        columns of a file, or of a folder, privatised; true counts estimated from what came out
privatize_source what is privatised, a file or the files of a folder, and where it may come out
privatize_codes  values of columns as positions among their levels, and back
privatize_note   the note beside a private file, with all that others need
privatize_screen what people see of it
counts_file      how many people there are for each candidate
select_private   a private choice for each group, what it costs, and how good it is
select_screen    what may be published, and apart from it what may not
"""
