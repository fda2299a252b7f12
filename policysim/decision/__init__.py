"""One decision for each patient: what choosing privately costs, and which mechanism to choose.

columns          the columns of a comparison, one function each
comparison       policies over epsilon, evaluated exactly: one tidy table
beliefs          what a published treatment tells an observer about a feature
demands, limit   the smallest epsilon that is good enough; what no mechanism can do, with the proof
results          all that is computed of one decision: tables by name
decision_answer  what is printed of it, as tables of cells: options, verdicts, names
redraws          how far results depend on the model's uncertain numbers, drawn anew
scenario_outcomes   what only a scenario tells: losses by outcome, prevalence, and what changes nothing
prices           what hiding each feature costs
frontier         utility against harm
publishing       what each way to publish treatments costs the patients, and its reader
behind_options   the tables behind the options: mechanisms, prices, an observer, redraws
decision_drawings    the figures
decision_question    policies compared
choose, choice_screen, choice_question   which epsilon, which mechanism
record, record_size   the decision record that people sign, and how large its letters may be on one sheet
adoption, methods     what must be accepted for it, a paragraph for a paper
audit, audit_question   claimed and exact privacy loss, also of a table made elsewhere; the sensitivity alone
"""
