"""The made-up tasks of evaluation_requests.py: documents in the columns of known data sets, and odd ones."""
import random

from evaluation_requests import case_of, function

WORDS = ("otter harbour lantern copper meadow violin glacier saffron engine pebble orchard comet ferry walnut prism "
         "naïve Käse 漢字 🙂 it's \"quoted\" a\\b [title] x_y 3.5 (left) {brace} <tag> 100% tab\there").split(" ")


class Maker:
    """Text of words of our own."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def words(self, least=1, most=5):
        return " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(least, most)))

    def sentence(self):
        text = self.words(3, 8)
        return text[:1].upper() + text[1:] + self.random.choice([".", "?", "!", ""])

    def texts(self, count):
        return [self.words() for _ in range(count)]

    def pick(self, items):
        return self.random.choice(items)

    def rows(self, count, row):
        return [row(self, i) for i in range(count)]


def mmlu(m, i):
    return {"question": m.pick(["", " ", "\n"]) + m.sentence() + m.pick(["", " ", "\n"]), "subject": "tides", "choices": m.texts(4),
            "answer": m.pick([0, 1, 2, 3])}


def arc(m, i):
    labels = m.pick([["A", "B", "C", "D"], ["1", "2", "3"], ["A", "B", "C", "D", "E"]])
    return {"id": f"made_{i}", "question": m.sentence(), "choices": {"text": m.texts(len(labels)), "label": labels},
            "answerKey": m.pick(labels)}


def openbookqa(m, i):
    row = arc(m, i)
    return {"id": row["id"], "question_stem": row["question"], "choices": row["choices"], "answerKey": " " + row["answerKey"]}


def piqa(m, i):
    return {"goal": m.sentence(), "sol1": m.sentence(), "sol2": m.words(), "label": m.pick([0, 1])}


def boolq(m, i):
    return {"question": m.words(3, 6), "passage": m.sentence() + " " + m.sentence(), "idx": i, "label": m.pick([0, 1])}


def hellaswag(m, i):
    ctx = [m.sentence() + m.pick(["", " [step] ", " [title] x", "[a\nb]", " [un closed", "[]"]) for _ in range(2)]
    return {"ind": i, "activity_label": m.words(1, 2), "ctx_a": ctx[0], "ctx_b": m.pick([ctx[1], "", "ÉTÉ Word"]),
            "endings": [m.pick([" ", "  "]).join([m.words(), "[header] " + m.words()]) for _ in range(4)], "label": m.pick("0123")}


def winogrande(m, i):
    return {"sentence": m.words(2, 4) + " _ " + m.pick(["", "_ "]) + m.words(2, 4) + m.pick([".", " . ", ""]),
            "option1": m.words(1, 1), "option2": m.words(1, 2), "answer": m.pick("12")}


def triviaqa(m, i):
    value = m.words()
    return {"question": m.words(3, 6), "answer": {"aliases": [value] + m.texts(m.pick([0, 1, 3])), "value": value}}


def nq(m, i):
    return {"question": m.words(3, 6), "answer": m.texts(m.pick([1, 2]))}


def gsm8k(m, i):
    return {"question": m.sentence(), "answer": m.sentence() + "\n<<2+3=5>>" + m.words() + f"\n#### {m.pick(['5', '1,200', '-3'])}"}


def bbh(m, i):
    return {"input": m.sentence() + "\nOptions:\n(A) " + m.words(), "target": m.pick(["(A)", "True", "No", "[ ] ( )", "17"])}


def lambada(m, i):
    return {"text": m.sentence() + " " + m.sentence(), "domain": None}


def wikitext(m, i):
    marks = [" @-@ ", " @,@ ", " @.@ ", " : ", " ; ", " . ", " ! ", " ? ", " , ", "( a )", "(b", " c )", "[ d ]", "{  }", '" e "', "' f '",
             "s ' ", "/' 5/", "= = = x = = =", "= = = =", "= =", " ° ", " \n", "\n ", " N ", " 's", "\u00a0", "()", "''"]
    return {"page": "".join(m.pick([m.words(1, 2), m.pick(marks)]) for _ in range(60))}


def siqa(m, i):
    return {"context": m.sentence(), "question": m.sentence(), "answerA": m.words(), "answerB": m.words(), "answerC": m.words(),
            "label": m.pick("123")}


def sciq(m, i):
    return {"question": m.sentence(), "distractor1": m.words(), "distractor2": m.words(), "distractor3": m.words(),
            "correct_answer": m.words(), "support": m.pick(["", m.sentence(), " \n" + m.sentence() + "\n"])}


def commonsense(m, i):
    row = arc(m, i)
    return {**row, "question_concept": m.words(1, 1)}


def copa(m, i):
    return {"premise": m.pick(["", " "]) + m.sentence() + ".", "choice1": "Élan " + m.words(), "choice2": m.sentence(),
            "question": m.pick(["cause", "effect"]), "idx": i, "label": m.pick([0, 1])}


def race(m, i):
    problems = [{"question": m.sentence() + m.pick(["", "  _  .", " _ ."]), "answer": m.pick("ABCD"), "options": m.texts(4)}
                for _ in range(m.pick([1, 2, 3]))]
    return {"article": m.sentence(), "problems": repr(problems)}


def logiqa(m, i):
    return {"label": m.pick(["a", " b", "c\n", "d"]), "context": m.sentence(), "question": m.sentence(), "options": m.texts(4)}


def medqa(m, i):
    return {"sent1": m.sentence(), "sent2": "", **{f"ending{k}": m.words() for k in range(4)}, "label": m.pick([0, 1, 2, 3])}


def pubmedqa(m, i):
    return {"QUESTION": m.sentence(), "CONTEXTS": [m.sentence(), m.sentence()], "final_decision": m.pick(["yes", "no", "maybe"])}


def mmlu_pro(m, i):
    return {"question": m.sentence(), "options": [" " + text for text in m.texts(m.pick([4, 10, 12]))], "answer": m.pick("ABCD"),
            "cot_content": "A: Let's think step by step. " + m.sentence(), "category": m.pick(["computer science", "law", "computer science"])}


LETTERS = ["A", "B", "C", "D"]
MC = {"output_type": "multiple_choice"}

# name, columns, config; "train" and "test" have rows.
FAMILIES = [
    ("mmlu", mmlu, {**MC, "test_split": "test", "fewshot_split": "train", "fewshot_config": {"sampler": "first_n"},
                    "description": "Questions about {{subject}} with answers.\n\n",
                    "doc_to_text": "{{question.strip()}}\n(A) {{choices[0]}}\n(B) {{choices[1]}}\n(C) {{choices[2]}}\n(D) {{choices[3]}}\nSolution:",
                    "doc_to_choice": LETTERS, "doc_to_target": "answer"}),
    ("arc", arc, {**MC, "training_split": "train", "test_split": "test", "doc_to_text": "Riddle: {{question}}\nReply:",
                  "doc_to_target": "{{choices.label.index(answerKey)}}", "doc_to_choice": "{{choices.text}}"}),
    ("openbookqa", openbookqa, {**MC, "training_split": "train", "test_split": "test", "doc_to_text": "question_stem",
                                "doc_to_target": "{{choices.label.index(answerKey.lstrip())}}", "doc_to_choice": "{{choices.text}}"}),
    ("piqa", piqa, {**MC, "training_split": "train", "validation_split": "test", "doc_to_text": "Goal: {{goal}}\nHow:",
                    "doc_to_target": "label", "doc_to_choice": "{{[sol1, sol2]}}"}),
    ("boolq", boolq, {**MC, "training_split": "train", "validation_split": "test", "doc_to_text": "{{passage}}\n{{question}}?\nReply:",
                      "doc_to_target": "label", "doc_to_choice": ["no", "yes"]}),
    ("hellaswag", hellaswag, {**MC, "training_split": "train", "validation_split": "test", "doc_to_text": "{{query}}",
                              "process_docs": function("hellaswag", "utils.process_docs"), "doc_to_target": "{{label}}",
                              "doc_to_choice": "choices"}),
    ("winogrande", winogrande, {**MC, "training_split": "train", "validation_split": "test",
                                **{f"doc_to_{key}": function("winogrande", f"preprocess_winogrande.doc_to_{key}")
                                   for key in ("text", "target", "choice")}}),
    ("triviaqa", triviaqa, {"training_split": "train", "validation_split": "test", "doc_to_text": "Riddle: {{question}}?\nReply:",
                            "doc_to_target": "{{answer.aliases}}"}),
    ("nq", nq, {"training_split": "train", "validation_split": "test", "description": "Reply to these.\n", "fewshot_delimiter": "\n",
                "doc_to_text": "R: {{question}}?\nA:", "doc_to_target": "{{answer}}"}),
    ("gsm8k", gsm8k, {"training_split": "train", "fewshot_split": "train", "test_split": "test", "doc_to_text": "Sum: {{question}}\nReply:",
                      "doc_to_target": "{{answer}}", "num_fewshot": 2}),
    ("gsm8k_cot", gsm8k, {"test_split": "test", "doc_to_text": "R: {{question}}\n\n  A:",
                          "doc_to_target": "{{answer.split('####')[-1].strip() if answer is defined else target}}", "num_fewshot": 2,
                          "fewshot_config": {"sampler": "first_n", "samples": [
                              {"question": "Two otters and one more?", "target": "Two and one are three. So it is 3."},
                              {"question": "Nine ferries less four?", "target": "Nine less four is five. So it is 5."}]}}),
    ("bbh", bbh, {"test_split": "test", "description": "Sort the words.\n\n", "doc_to_text": "R: {{input}}\nA: In small steps.\n",
                  "doc_to_target": "{{target}}", "target_delimiter": "", "num_fewshot": 1,
                  "fewshot_config": {"sampler": "first_n", "samples": [{"input": "b a", "target": "a comes first. So a b."}]}}),
    ("lambada", lambada, {"output_type": "loglikelihood", "test_split": "test", "training_split": "train",
                          "doc_to_text": "{{text.split(' ')[:-1]|join(' ')}}", "doc_to_target": "{{' '+text.split(' ')[-1]}}"}),
    ("wikitext", wikitext, {"output_type": "loglikelihood_rolling", "test_split": "test", "training_split": "train", "doc_to_text": "",
                            "doc_to_target": function("wikitext", "preprocess_wikitext.wikitext_detokenizer"),
                            "process_results": function("wikitext", "preprocess_wikitext.process_results"),
                            "metric_list": [{"metric": "word_perplexity"}]}),
    ("siqa", siqa, {**MC, "training_split": "train", "validation_split": "test", "doc_to_text": "R: {{context}} {{question}}\nA:",
                    "target_delimiter": " ", "doc_to_choice": "{{[answerA, answerB, answerC]}}", "doc_to_target": "{{ (label|int) - 1 }}"}),
    ("sciq", sciq, {**MC, "training_split": "train", "test_split": "test", "doc_to_text": "{{support.lstrip()}}\n{{question}}\nReply:",
                    "doc_to_target": 3, "doc_to_choice": "{{[distractor1, distractor2, distractor3, correct_answer]}}"}),
    ("commonsense", commonsense, {**MC, "training_split": "train", "validation_split": "test",
                                  "doc_to_text": "R: {{ question.strip() }}\n{% for c in choices.text %}{{choices.label[loop.index0]}}) "
                                                 "{{c}}\n{% endfor %}A:",
                                  "doc_to_target": "{{choices.label.index(answerKey)}}", "doc_to_choice": "{{choices.label}}"}),
    ("copa", copa, {**MC, "training_split": "train", "validation_split": "test",
                    **{f"doc_to_{key}": function("super_glue/copa", f"utils.doc_to_{key}") for key in ("text", "target", "choice")}}),
    ("race", race, {**MC, "test_split": "test", "training_split": "train",
                    **{f"doc_to_{key}": function("race", f"preprocess_race.doc_to_{key}") for key in ("text", "target", "choice")}}),
    ("logiqa", logiqa, {**MC, "training_split": "train", "test_split": "test", "doc_to_choice": "{{options}}",
                        **{f"doc_to_{key}": function("logiqa", f"utils_logiqa.doc_to_{key}") for key in ("text", "target")}}),
    ("medqa", medqa, {**MC, "training_split": "train", "test_split": "test", "doc_to_choice": LETTERS,
                      **{f"doc_to_{key}": function("medqa", f"preprocess_medqa.doc_to_{key}") for key in ("text", "target")}}),
    ("pubmedqa", pubmedqa, {**MC, "training_split": "train", "test_split": "test", "doc_to_target": "final_decision",
                            "doc_to_text": function("pubmedqa", "preprocess_pubmedqa.doc_to_text"),
                            "doc_to_choice": ["yes", "no", "maybe"]}),
    ("mmlu_pro", mmlu_pro, {"test_split": "test", "fewshot_split": "train", "doc_to_target": "answer",
                            "process_docs": function("mmlu_pro", "utils.process_computer_science"),
                            "doc_to_text": function("mmlu_pro", "utils.doc_to_text"),
                            "fewshot_config": {"sampler": "first_n", "doc_to_text": function("mmlu_pro", "utils.fewshot_to_text"),
                                               "doc_to_target": function("mmlu_pro", "utils.fewshot_to_target")}}),
    ("xwinograd", winogrande, {**MC, "test_split": "test", "training_split": "train",
                               **{f"doc_to_{key}": function("xwinograd", f"utils.doc_to_{key}") for key in ("text", "target", "choice")}}),
]

# What each family is asked with.
VARIANTS = [
    ("0", {}, {}),
    ("2", {}, {"num_fewshot": 2}),
    ("chat", {}, {"num_fewshot": 1, "chat": True, "system": "Be brief."}),
    ("chat_one", {}, {"num_fewshot": 1, "chat": True, "multiturn": False}),
    ("prefix", {"gen_prefix": "So,"}, {"num_fewshot": 1, "seed": 7}),
    ("prefix_chat", {"gen_prefix": "So: "}, {"num_fewshot": 1, "chat": True, "multiturn": False, "system": "Hm\n"}),
]


def family_cases():
    cases = []
    for number, (name, columns, config) in enumerate(FAMILIES):
        for variant, extra, options in VARIANTS:
            maker = Maker(100 + number)
            splits = {"train": maker.rows(6, columns), "test": maker.rows(2 if options.get("chat") else 3, columns)}
            cases.append(case_of(f"{name}_{variant}", {**config, **extra}, splits, options))
    return cases


def made_cases():
    from evaluation_requests_odd import odd_cases
    return family_cases() + odd_cases(Maker)
