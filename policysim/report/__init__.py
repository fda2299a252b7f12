"""From any answer to what people read and keep.

deliver       a question asked, answered, printed and written
folder        an answer as files: tables, figures, pages, manifest
figure_files  which figure files a folder has
environment, shown   how templates write numbers
csv_file      tables as files
page, answer, drawings, rows, ranking, slider   what the report of a comparison says and shows
"""
