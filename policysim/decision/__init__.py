"""One decision for each patient: what choosing privately costs, and which mechanism to choose.

columns          the columns of a comparison, one function each
comparison       policies over epsilon, evaluated exactly: one tidy table
beliefs          what a published treatment tells an observer about a feature
demands, limit   the smallest epsilon that is good enough; what no mechanism can do, with the proof
results          all that is computed of one decision: tables by name
decision_answer  what is printed of it, as tables of cells: options, verdicts, names
redraws          how far results depend on the model's uncertain numbers, drawn anew
scenario_outcomes   what only a scenario tells: losses by outcome, drivers, prevalence, events, and what changes nothing
prices           what hiding each feature costs
frontier         utility against harm
findings         what a comparison found at one epsilon
headline, summary    the finding as a title, with one number; the answer in sentences
brief, headings  the first screen of the page, who bears the extra deaths; what each section found
over_epsilon     what happens over epsilon, in sentences
decision_drawings, page_values, comparison_screen   what people see of it
decision_question    policies compared
choose           which epsilon each policy needs, and what no mechanism can do
choice_answer    what is chosen of it, and how sure that is, as tables of cells
choice_record    what the decision record has beside: by whom, on what terms, who pays
choice_question  which epsilon, which mechanism
audit, audit_question   claimed and exact privacy loss, also of a table made elsewhere; the sensitivity alone
"""
