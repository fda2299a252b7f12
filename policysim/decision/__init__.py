"""One decision for each patient: what choosing privately costs, and which mechanism to choose.

comparison       policies over epsilon, evaluated exactly: one tidy table, and its columns, one function each
beliefs          what an observer believes about a feature before and after a treatment
record_risk      how often an observer's best guess of a record is right
trade_off        how well any test tells two patients apart: the privacy profile, and its two errors
demands, limit   the smallest epsilon that is good enough, and its search; what no mechanism can do, with the proof
evidence, find, words, report   what is computed of one decision, what is found in it, its words, and the report
behind, page_data   the tables behind the screen, and the data of the page's controls
exchange, harmed, textbook   what one leading outcome counts for; who is harmed; why the textbook's mechanism does badly
redraws          versions of the model, in which its uncertain numbers vary
scenario_outcomes   for a scenario: losses by outcome, prevalence, and features without effect
prices           what hiding each feature costs
frontier         utility against harm
publishing       what each way to publish treatments costs the patients, and its reader
drawings         the figures of a report
choose           which epsilon each policy needs, and what no mechanism can do
choose_findings, choose_words, choose_report   what is chosen of it and why, its words, and the report
audit, audit_words   claimed and exact privacy loss, also of a table made elsewhere
"""
