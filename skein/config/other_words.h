// What other programs, papers and people call the settings of a run, and the keys here that they
// lead to: for errors about unknown keys and options, for --help, and for the table of
// docs/configuration.md, which a test compares.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

struct OtherWord {
  std::string_view word;     // as people say it: "gradient accumulation"
  std::string_view names;    // of keys elsewhere, between spaces, in small letters with underscores
  std::string_view keys;     // here, between spaces: "batch.global_sequences"; "": there is none
  std::string_view meaning;  // one line of Markdown; where `keys` is empty, what to do instead
  bool in_help = false;      // also in the --help of `train` and `plan`
};

std::span<const OtherWord> other_words();

// The row of a key of another program, as "tp", "Batch-Size" or "gradient_accumulation_steps"; null
// where there is none.
const OtherWord* find_other_word(std::string_view name);

std::vector<std::string> keys_of(const OtherWord& word);  // "batch.global_sequences"

// "did you mean learning_rate in [optimizer]? (…)", or "gradient accumulation: …". `section`: the
// one in which the name stands, whose keys are written without it.
std::string explain_other_word(const OtherWord& word, std::string_view section);

// "; did you mean …" of the row of `name`, to stand behind an error; "" where there is none.
std::string advice_on_word(std::string_view name);

// "; for bfloat16: "mixed" keeps …", to stand behind the choices of a key whose value is none of
// them; "" where nothing is known. `key`: "precision.mode". `value`: as it was given.
std::string explain_other_value(std::string_view key, std::string_view value);

// The meaning of a row as it is read in a terminal.
std::string plain_meaning(const OtherWord& word);

// The table of docs/configuration.md, in Markdown.
std::string other_words_table();
// The lines of --help.
std::string other_words_help();

}  // namespace skein
