"""The words of art that screens and pages print, at most 25, each with its meaning: the same as docs/glossary.md."""

from __future__ import annotations

GLOSSARY = {
    "ε": "A limit on what a treatment can leak: no treatment is more than e^ε times as likely for one record as for "
    "another. At ε = 1 the factor is 2.72; a smaller ε hides more.",
    "95 % interval": "Of 100 trials like this one, about 95 would give an interval that holds the true difference. If "
    "0 lies inside, the data do not show a difference.",
    "Acceptability curve": "In how many versions of the model B is better than A, against the number that one leading "
    "outcome counts; for example, against the number of headaches that count as much as one death.",
    "Arm": "One of the treatments of a trial, such as drug and placebo.",
    "Belief": "How probable an observer thinks a fact about the patient, before and after seeing the treatment. An "
    "observer who knows that 10 % of patients are infected may think 23 % after an antibiotic.",
    "Best private draw": "A treatment drawn at random, with odds that the patient's record sets within ε, so that "
    "little utility is lost. The limit says how much any such draw must lose.",
    "Course": "All treatments of a patient from the first day to the last, such as drug, drug, nothing.",
    "Expected value of perfect information": "How much utility a patient would gain, on average, if the uncertain "
    "numbers of the model were known before A or B is chosen. If it is 0, more research would not change the choice.",
    "Exponential mechanism": "Draws a treatment with odds that fall with the utility that it loses. The textbook's "
    "starts from equal odds; the fitted one keeps each probability between a public floor and e^ε times the floor.",
    "Harmed": "A group of patients has worse outcomes under one option than under another. For example, of 100,000 "
    "infected patients 301 more die under B than under A.",
    "Leaks": "The treatment changes what an observer believes about the patient's record.",
    "Limit": "The least utility that any mechanism with this ε must lose, if patients get the treatment that "
    "observers see. policysim checks a proof of it.",
    "Observer": "A person who must not learn the secret, and who sees the treatment or a published list.",
    "Policy": "A rule that sets the probability of each treatment for each record, such as 90 % drug a and 10 % drug "
    "b.",
    "Prior": "The assumed share of patients with each record, such as 10 % infected.",
    "Public": "A feature that the observer knows already, such as age. ε hides the other features.",
    "Record": "All features of one patient, such as age 60 to 79, fever, infected.",
    "Replaced at random": "An entry of a published list shows another treatment than the patient got, with a "
    "probability that ε sets. At ε = 1, 48 of 100 entries of four treatments are true.",
    "Schedule": "One treatment for each day, fixed before the first day, such as a drug on day 1 and nothing after.",
    "Sensitivity Δ": "The most by which the utility of one treatment differs between two records. If a death counts "
    "100 and one treatment surely kills one conceivable patient, Δ is at least 100.",
    "Total ε": "The ε of all treatments of a patient together, from the first day to the last.",
    "Two patients told apart": "How often an observer who sees the treatment can say which of two patients got it: 50 "
    "of 100 with a coin toss, at most 73 of 100 at ε = 1.",
    "Utility": "All outcomes of a patient as one number, each outcome times its weight; a unit of utility, or of cost, "
    "is as much as one outcome of weight 1. Utility lost is compared with the best treatment for each patient.",
    "Versions of the model": "The model with its uncertain numbers varied, for example 200 times. An option is better "
    "if it is better in at least 90 of 100 versions, and worse if in at most 10.",
    "Weighs": "What one event counts in utility, such as 100 for a death and 0.1 for a headache.",
}
