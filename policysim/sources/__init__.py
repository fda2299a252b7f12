"""Studies of source documents: every figure that a source prints beside ours, and where it is wrong.

A study file with the key ``analysis`` is such a study; only `policysim compare` runs it. It holds constants alone:
counts, what the source declares, and its figures in quotes, with the digits printed there and a word on where. Then:

file -- reading --> Constants -- one analysis a study --> Findings -- page, screen --> what people see and keep

digits         whether a number of ours is the one printed, to its digits
model          Findings: lead sentences, a Row per figure, Errata, Sections with tables and Drawings (table + function)
reading        what the files share: counts, quoted figures, claims; mistakes by line
rows           quoted figures to rows
single_runs    where a single run lies: 95 % band, and the chance of one that is as unlikely
losses         exact privacy loss of a private choice from counts
drawing        the look that the figures share
studies        the analyses by name, and a study file read
page           the files of a report: page, tables, figures, manifest
run            `policysim compare` of such a study: options, screen, JSON and files

An analysis X is up to three modules: X (Constants, ``read(table) -> Constants`` and the computations), X_drawings, and
X_findings (``analyse(constants) -> Findings``, pure; with a seed if something is drawn at random):

sock_groups        the exponential mechanism on a small and a large group
adult_age_sex      k-ary response on two columns; two_coins: two-coin response, a section of it
common_disease     the most common value; largest_industry: which tables allow 949 of 1,000 right, a section of it
marital_status     the most common value, with a score that is a thousandth of a count

randomise_or_decide (_curves, _findings, _drawings)   noise on the record or on the decision, per hidden set
learning (_patients, _rows, _correction, _scores, _runs, _summary, _findings, _drawings)   training on private columns
policy_study   the study of policies that these two build on

A new one is a file in policysim/studies, these modules, and a line in `studies`.
"""
