// Methods of Python's str that look for text and cut it; for methods_text.cc.
//
// Errors   Refusal, in Python's words
#pragma once

#include <string>
#include <string_view>

#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

// `text`, escaped where what it is of was.
Value text_value(std::string_view text, const String& of, Budget& budget);
// An argument of a method; of a method of what was escaped, it is escaped as well.
std::string argument_text(const Value& value, const String& of, std::string_view method);

// Where `sub` is found, in characters; -1.
int64_t found_at(const String& of, const Arguments& given, Budget& budget, const char* name,
                 bool last);
Value index_or_refuse(int64_t at);
bool starts_or_ends(const String& of, const Arguments& given, Budget& budget, const char* name,
                    bool starts);
Value counted(const String& of, const Arguments& given, Budget& budget);
Value replaced(const String& of, const Arguments& given, Budget& budget);

Value split_text(const String& of, const Arguments& given, Budget& budget, bool from_right);
Value partitioned(const String& of, const Arguments& given, Budget& budget, bool last);
Value joined(const String& of, const Arguments& given, Budget& budget);
Value split_into_lines(const String& of, const Arguments& given, Budget& budget);
Value without_affix(const String& of, const Arguments& given, Budget& budget, bool prefix);

}  // namespace skein::jinja
