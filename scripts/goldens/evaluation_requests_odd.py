"""The odd tasks of evaluation_requests.py: each shows one rule of the harness, or one of its errors."""
from evaluation_requests import case_of, function

MC = {"output_type": "multiple_choice"}
ROWS = [{"q": f"question {i}", "a": f"answer {i}", "n": i % 2, "c": [f"left {i}", f"right {i}"], "b": i % 2 == 0, "s": str(i % 2),
         "e": "", "z": None, "l": [f"one {i}", f"two {i}"], "p": f"prefix {i}"} for i in range(8)]
BASE = {"test_split": "test", "doc_to_text": "q", "doc_to_target": "a"}
CHOICE = {**MC, "test_split": "test", "training_split": "train", "doc_to_text": "Q: {{q}}", "doc_to_target": "n", "doc_to_choice": "c"}
SPLITS = {"train": ROWS[3:], "test": ROWS[:3]}
ONE = {"num_fewshot": 1}
TWO = {"num_fewshot": 2}
LONE = {"train": [{"q": "only", "a": "x"}], "test": [{"q": "only", "a": "x"}]}
TWINS = {"test": [{"q": "same", "a": "x"}] * 3 + [{"q": f"other {i}", "a": "y"} for i in range(4)]}

# name, config, options, splits
ODD = [
    # The tested split and that of the examples.
    ("same_split", {**BASE, "fewshot_split": "test"}, TWO, SPLITS),
    ("same_split_first", {**BASE, "fewshot_split": "test", "fewshot_config": {"sampler": "first_n"}}, TWO, SPLITS),
    ("same_split_twins", {**BASE, "fewshot_split": "test"}, TWO, TWINS),
    ("same_split_twins_3", {**BASE, "fewshot_split": "test"}, {"num_fewshot": 3, "seed": 3}, TWINS),
    ("validation_is_not_removed", {"validation_split": "test", "fewshot_split": "test", "doc_to_text": "q", "doc_to_target": "a"}, TWO, SPLITS),
    ("neither_split", {"validation_split": "test", "training_split": "train", "doc_to_text": "q", "doc_to_target": "a"}, TWO, SPLITS),
    ("no_train", BASE, TWO, SPLITS),
    ("no_train_validation", {**BASE, "validation_split": "train"}, TWO, SPLITS),
    ("too_few", {**BASE, "training_split": "train"}, {"num_fewshot": 9}, SPLITS),
    ("too_few_first", {**BASE, "training_split": "train", "fewshot_config": {"sampler": "first_n"}}, {"num_fewshot": 9}, SPLITS),
    ("too_few_same", {**BASE, "fewshot_split": "test"}, {"num_fewshot": 3}, SPLITS),
    ("lone", {**BASE, "fewshot_split": "test"}, ONE, LONE),
    ("long_draws", {**BASE, "training_split": "train"}, {"num_fewshot": 5, "seed": 42}, {"train": ROWS * 5, "test": ROWS}),
    ("all_samples", {**BASE, "fewshot_config": {"samples": [{"q": "s1", "a": "t1"}, {"q": "s2", "a": "t2"}, {"q": "s3", "a": "t3"}]}}, TWO, SPLITS),
    ("sample_without_column", {**BASE, "fewshot_config": {"samples": [{"q": "s1"}] * 3}}, TWO, SPLITS),
    ("indices", {**BASE, "fewshot_split": "train", "fewshot_config": {"fewshot_indices": [0, 1]}}, TWO, SPLITS),
    ("own_fields", {**CHOICE, "fewshot_config": {"doc_to_text": "Example {{q}}", "doc_to_target": "a", "doc_to_choice": None,
                                                 "fewshot_delimiter": "\n--\n", "target_delimiter": " => "}}, TWO, SPLITS),
    ("own_empty_text", {**BASE, "training_split": "train", "fewshot_config": {"doc_to_text": ""}}, TWO, SPLITS),
    ("own_prefix", {**BASE, "training_split": "train", "gen_prefix": "Then", "fewshot_config": {"gen_prefix": "As"}}, TWO, SPLITS),
    ("no_own_prefix", {**BASE, "training_split": "train", "gen_prefix": "Then", "fewshot_config": {"gen_prefix": None}}, TWO, SPLITS),
    # Numbers of examples, limits.
    ("zero_stays_zero", {**BASE, "training_split": "train", "num_fewshot": 0}, TWO, SPLITS),
    ("fewer_by_option", {**BASE, "training_split": "train", "num_fewshot": 3}, ONE, SPLITS),
    ("limit", BASE, {"limit": 2}, SPLITS),
    ("limit_share", BASE, {"limit": 0.34}, SPLITS),
    ("limit_beyond", BASE, {"limit": 50}, SPLITS),
    # Instructions, delimiters, beginnings of answers.
    ("description_column", {**BASE, "description": "p"}, {"system": "Do this."}, SPLITS),
    ("description_template", {**BASE, "description": "{{p}}\n"}, {"system": "Do this."}, SPLITS),
    ("description_null", {**BASE, "description": None}, {"system": "Do this."}, SPLITS),
    ("description_none_column", {**BASE, "description": "z"}, {}, {"test": [{"q": "x", "a": "y", "z": None}]}),
    ("prefix_column", {**BASE, "training_split": "train", "gen_prefix": "p"}, TWO, SPLITS),
    ("prefix_template", {**CHOICE, "gen_prefix": "{{p}} "}, {**TWO, "chat": True}, SPLITS),
    ("prefix_tight", {**CHOICE, "gen_prefix": "{{p}}"}, {**TWO, "chat": True}, SPLITS),
    ("prefix_behind_space", {**BASE, "doc_to_text": "{{q}}\u00a0", "gen_prefix": "So"}, {}, SPLITS),
    ("prefix_of_nothing", {**BASE, "doc_to_text": "{{e}}", "gen_prefix": "So"}, {}, SPLITS),
    ("prefix_number", {**BASE, "gen_prefix": "n"}, {}, SPLITS),
    ("delimiters", {**CHOICE, "target_delimiter": "\n", "fewshot_delimiter": "###"}, TWO, SPLITS),
    ("system_chat_multiturn", {**CHOICE, "description": "Choose."}, {**TWO, "chat": True, "system": "Be brief."}, SPLITS),
    ("system_chat_single", {**CHOICE, "description": "Choose."}, {**TWO, "chat": True, "multiturn": False, "system": "Be brief."}, SPLITS),
    ("last_line_end_stays", {**BASE, "doc_to_text": "{{q}}\n", "doc_to_target": "{{a}}\n\n"}, {}, SPLITS),
    ("nothing_is_trimmed", {**BASE, "doc_to_text": "  {% if n %}\n  x\n  {% else %}\n  y\n  {% endif %}\n"}, {}, SPLITS),
    # Targets.
    ("target_list_column", {**BASE, "training_split": "train", "doc_to_target": "l"}, TWO, SPLITS),
    ("target_list_template", {**BASE, "training_split": "train", "doc_to_target": "{{l}}"}, TWO, SPLITS),
    ("target_list", {**BASE, "training_split": "train", "doc_to_target": ["x", "y"]}, TWO, SPLITS),
    ("target_empty_list", {**BASE, "training_split": "train", "doc_to_target": []}, TWO, SPLITS),
    ("target_in_brackets", {**BASE, "doc_to_target": "[{{a}}]"}, {}, SPLITS),
    ("target_digits", {**BASE, "doc_to_target": "{{n}}"}, {}, SPLITS),
    ("target_digits_choices", {**CHOICE, "doc_to_target": "{{n}}"}, TWO, SPLITS),
    ("target_zeros", {**CHOICE, "doc_to_target": "00"}, TWO, SPLITS),
    ("target_leading_zero", {**CHOICE, "doc_to_target": "01"}, {}, SPLITS),
    ("target_superscript", {**CHOICE, "doc_to_target": "²"}, {}, SPLITS),
    ("target_text_of_choices", {**CHOICE, "doc_to_target": "{{c[n]}}"}, TWO, SPLITS),
    ("target_bool", {**CHOICE, "doc_to_target": "b"}, TWO, SPLITS),
    ("target_minus", {**CHOICE, "doc_to_target": -1}, TWO, SPLITS),
    ("target_places", {**CHOICE, "doc_to_target": [0, 1]}, {}, SPLITS),
    ("target_places_shot", {**CHOICE, "doc_to_target": [0, 1]}, ONE, SPLITS),
    ("target_none_shot", {**BASE, "training_split": "train", "doc_to_target": "z"}, ONE,
     {"train": [{"q": "x", "a": "y", "z": None}] * 2, "test": ROWS[:2]}),
    ("target_empty_shot", {**BASE, "training_split": "train", "doc_to_target": "e"}, TWO, SPLITS),
    ("target_number_shot", {**BASE, "training_split": "train", "doc_to_target": "n"}, ONE, SPLITS),
    ("target_absent", {"test_split": "test", "doc_to_text": "q"}, {}, SPLITS),
    ("target_beyond", {**CHOICE, "doc_to_target": "{{n + 5}}"}, {}, SPLITS),
    ("target_beyond_later", CHOICE, {}, {"train": ROWS, "test": [ROWS[0], {**ROWS[1], "n": 7}]}),
    ("target_beyond_shot", CHOICE, ONE, {"train": [{**ROWS[1], "n": 7}] * 2, "test": ROWS[:2]}),
    ("loglikelihood_number", {**BASE, "output_type": "loglikelihood", "doc_to_target": "n"}, {}, SPLITS),
    ("loglikelihood_shots", {**BASE, "output_type": "loglikelihood", "training_split": "train"}, TWO, SPLITS),
    ("rolling_shots", {**BASE, "output_type": "loglikelihood_rolling", "training_split": "train"}, TWO, SPLITS),
    ("generate_choices", {**CHOICE, "output_type": "generate_until"}, TWO, SPLITS),
    # Choices.
    ("choices_dict", {**CHOICE, "doc_to_choice": {"x": "first", "y": "second"}}, TWO, SPLITS),
    ("choices_tuple", {**CHOICE, "doc_to_choice": "{{ (q, a) }}"}, ONE, SPLITS),
    ("choices_odd_text", {**CHOICE, "doc_to_choice": "{{ [q ~ '\\'\"\\\\\\n\u200b', a ~ 'é漢🙂'] }}"}, ONE, SPLITS),
    ("choices_by_hand", {**CHOICE, "doc_to_choice": "['{{q}}', \"{{a}}\", ]"}, ONE, SPLITS),
    ("choices_numbers", {**CHOICE, "doc_to_choice": [0, 1]}, {}, SPLITS),
    ("choices_bools", {**CHOICE, "doc_to_choice": [False, True]}, {}, SPLITS),
    ("choices_no_literal", {**CHOICE, "doc_to_choice": "{{q}}"}, {}, SPLITS),
    ("choices_empty_first", {**CHOICE, "doc_to_choice": ["", "x"]}, {}, SPLITS),
    ("choices_empty_later", CHOICE, {}, {"train": ROWS, "test": [ROWS[0], {**ROWS[1], "c": ["", "x"]}]}),
    ("choices_text", {**CHOICE, "doc_to_choice": "'{{ n }}b'"}, {}, SPLITS),
    ("choices_of_templates", {**CHOICE, "doc_to_choice": ["{{q}}", "no"]}, {}, SPLITS),
    ("mutual_info", {**CHOICE, "metric_list": [{"metric": "acc"}, {"metric": "acc_mutual_info"}]}, ONE, SPLITS),
    ("mutual_info_chat", {**CHOICE, "metric_list": [{"metric": "acc_mutual_info"}]}, {**ONE, "chat": True}, SPLITS),
    # Several inputs.
    ("inputs_column", {**CHOICE, "doc_to_text": "n", "doc_to_target": "a"}, TWO, SPLITS),
    ("inputs_number", {**CHOICE, "doc_to_text": 1, "doc_to_target": "a"}, TWO, SPLITS),
    ("inputs_digits", {**CHOICE, "doc_to_text": "{{n}}", "doc_to_target": "{{a}}"}, TWO, SPLITS),
    ("inputs_chat", {**CHOICE, "doc_to_text": "n", "doc_to_target": "a", "gen_prefix": "Then"}, {**TWO, "chat": True, "system": "S"}, SPLITS),
    ("inputs_mutual_info", {**CHOICE, "doc_to_text": "n", "doc_to_target": "a", "metric_list": [{"metric": "acc_mutual_info"}]}, ONE, SPLITS),
    ("inputs_number_target", {**CHOICE, "doc_to_text": "n"}, {}, SPLITS),
    ("inputs_number_target_shot", {**CHOICE, "doc_to_text": "n"}, ONE, SPLITS),
    ("inputs_without_choices", {**BASE, "doc_to_text": "n"}, {}, SPLITS),
    ("inputs_generate", {**CHOICE, "output_type": "generate_until", "doc_to_text": "n"}, {}, SPLITS),
    # Errors.
    ("undefined", {**BASE, "doc_to_text": "{{question}}"}, {}, SPLITS),
    ("undefined_attribute", {**BASE, "doc_to_text": "{{q.nothing}}"}, {}, SPLITS),
    ("undefined_in_if", {**BASE, "doc_to_text": "{% if nothing %}x{% endif %}"}, {}, SPLITS),
    ("defined", {**BASE, "doc_to_text": "{% if nothing is defined %}x{% endif %}{{q}}{{ 'y' if false }}"}, {}, SPLITS),
    ("syntax", {**BASE, "doc_to_text": "{{q"}, {}, SPLITS),
    ("text_none", {**BASE, "doc_to_text": "z"}, {}, {"test": [{"q": "x", "a": "y", "z": None}]}),
    ("no_choices_given", {**MC, **BASE}, {}, SPLITS),
    ("regex_replace", {**BASE, "doc_to_text": "{{ q|regex_replace('([a-z]+) ([0-9])', '\\\\2-\\\\1') }}{{ a|regex_replace('[aeiou]', '*', 2) }}"}, {}, SPLITS),
    ("tojson", {**BASE, "doc_to_text": "{{ {'b': l, 'a': \"<it's> & é\"}|tojson }}\n{{ l|tojson(indent=2) }}{{ [1, none, true, 2.5]|tojson ~ '<' }}"}, {}, SPLITS),
    ("regex_replace_bad", {**BASE, "doc_to_text": "{{ q|regex_replace('(', '') }}"}, {}, SPLITS),
    ("filters", {**BASE, "doc_to_text": "{{q|upper|replace('U', 'u')}} {{l|map('trim')|list}} {{n|string|int + 1}} {{l|length}} "
                                        "{{l|join(', ')|capitalize}}{% set x = q.split() %}{{x[-1]}}{{ '%03d'|format(n) }}"}, {}, SPLITS),
]


def function_cases(maker_type):
    """Texts of the kind that the harness's functions rewrite, many of them."""
    from evaluation_requests_made import FAMILIES
    cases = []
    for number, (name, columns, config) in enumerate(FAMILIES):
        if not any(isinstance(value, dict) and "!function" in value for value in config.values()):
            continue
        maker = maker_type(900 + number)
        cases.append(case_of(f"{name}_many", config, {"train": maker.rows(2, columns), "test": maker.rows(12, columns)}))
    bad = {"test": [{"sentence": "no blank", "option1": "a", "option2": "b", "answer": "1"}]}
    config = {**MC, "test_split": "test", **{f"doc_to_{key}": function("winogrande", f"preprocess_winogrande.doc_to_{key}")
                                             for key in ("text", "target", "choice")}}
    cases.append(case_of("winogrande_without_blank", config, bad))
    bad = {"test": [{"sentence": "a _ b", "option1": "a", "option2": "b", "answer": ""}]}
    cases.append(case_of("winogrande_without_answer", config, bad))
    return cases


def odd_cases(maker_type):
    return [case_of(name, config, splits, options) for name, config, options, splits in ODD] + function_cases(maker_type)
