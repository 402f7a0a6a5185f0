// Words for a shell: a command line that means exactly the given arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace skein {

// The word itself where a shell leaves it alone, else in single quotes.
std::string shell_word(std::string_view word);

// Words with a blank between them.
std::string shell_words(std::span<const std::string> words);

}  // namespace skein
