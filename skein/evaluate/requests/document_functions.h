// The functions behind the rows of known_functions.cc: what tasks compute of a document.
//
// Errors   kNotFound: "the document has no column 'NAME'"; kInvalid: a column of another type, or
//          text that is not as the data set has it
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skein/jinja/values/value.h"

namespace skein {

const jinja::Value& column(const jinja::Value& document, std::string_view name);
const std::string& text_column(const jinja::Value& document, std::string_view name);
std::vector<std::string> texts_column(const jinja::Value& document, std::string_view name);

// hellaswag: adds the columns query, choices and gold.
jinja::Value hellaswag_document(const jinja::Value& document);

// winogrande, xwinograd: the text before the blank with each option; the text behind it.
jinja::Value winogrande_text(const jinja::Value& document);
jinja::Value winogrande_target(const jinja::Value& document);
jinja::Value winogrande_choice(const jinja::Value& document);

// wikitext_text.cc: the page as it was before it was cut into tokens.
jinja::Value wikitext_target(const jinja::Value& document);

jinja::Value copa_text(const jinja::Value& document);
jinja::Value copa_target(const jinja::Value& document);
jinja::Value copa_choice(const jinja::Value& document);

jinja::Value race_text(const jinja::Value& document);
jinja::Value race_target(const jinja::Value& document);
jinja::Value race_choice(const jinja::Value& document);

// mbpp_samples.cc: the documents of its examples.
std::vector<jinja::Value> mbpp_samples();

// exam_functions.cc
jinja::Value logiqa_text(const jinja::Value& document);
jinja::Value logiqa_target(const jinja::Value& document);
jinja::Value medqa_text(const jinja::Value& document);
jinja::Value medqa_target(const jinja::Value& document);
jinja::Value pubmedqa_text(const jinja::Value& document);
jinja::Value mmlu_pro_text(const jinja::Value& document);
jinja::Value mmlu_pro_target(const jinja::Value& document);

}  // namespace skein
