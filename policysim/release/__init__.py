"""What leaves the house: treatments for patients, columns randomised row by row, noisy counts, a choice from counts.

ledger           what was released about one group of people, what it costs each of them, and what is not yet delivered
delivery         drawn out of sight, counted, and then in its place with its note, once, whatever ends the run
decide           a treatment for each patient and event, drawn once and charged to the patient
patients_file    the patients that treatments are drawn for, read and checked
people           whose rows there are: how many of a person count, and who is charged
exact            exact draws
privatize        columns of a file, or of a folder, privatised; where they may come out; true counts estimated from
                 them, and what people see of both
privatize_source what is privatised, a file or the files of a folder; values as positions among their levels
privatize_note   what is done to which columns, and the note beside a private file, with all that others need
noisy_table      counts of columns with noise: the table, its note, what is printed
private_cells    successes and failures of a log, for each class and arm, that a study is planned on
counts_file      how many people there are for each candidate
select_private   a private selection for each group, its cost and quality; the public and the private part
"""
