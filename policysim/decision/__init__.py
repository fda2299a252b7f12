"""One decision for each patient: what choosing privately costs, and which mechanism to choose.

evaluate         exact evaluation of action probabilities, overall and per group
comparison       policies over epsilon, as a tidy table
search, limit    the smallest epsilon that is good enough; what no mechanism can do, with the proof
findings         what a comparison found at one epsilon
robustness       how far results depend on the prior and on illustrative effects
prices           what hiding each feature costs, and what drives the sensitivity
example_patients patients with a name, to see what a policy does to one; how losses vary between patients
summary          the answer in sentences
slider           the numbers that follow epsilon and policy on a page, and which policy is shown first
decision_drawings, page_values, comparison_screen   what people see of it
decision_question    policies compared; sensitivity_question: the sensitivity alone
choose, choice_screen, choice_question   which epsilon, which mechanism
record, methods   the decision record that people sign, and a paragraph for a paper
audit, audit_question   claimed and exact privacy loss, also of a table made elsewhere
"""
