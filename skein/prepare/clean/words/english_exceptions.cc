#include "skein/prepare/clean/words/english_exceptions.h"

#include <fmt/format.h>

#include <string_view>

namespace skein {
namespace {

using WordList = std::vector<std::string>;

// Blanks separate what a list holds.
WordList list(std::string_view text) {
  WordList words;
  for (size_t at = 0; (at = text.find_first_not_of(" \n", at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

constexpr std::string_view kApostrophe = "'";
constexpr std::string_view kQuotationMark = "\xe2\x80\x99";  // U+2019, which stands for it as well

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class Exceptions {
 public:
  // The words, put together, are split into them.
  void add(const WordList& words) {
    insert(words);
    WordList other = words;
    for (std::string& word : other) word = replace_all(word, kApostrophe, kQuotationMark);
    insert(other);
  }

  // The same with a capital letter at the front as well.
  void add_title(WordList words) {
    add(words);
    words[0] = title(words[0]);
    add(words);
  }

  // `endings` as they are, and without their apostrophes.
  void add_contractions(std::string_view words, std::string_view endings) {
    for (const std::string& word : list(words)) {
      for (const std::string& ending : list(endings)) add_contraction(word, ending);
    }
  }

  void add_whole(std::string_view words) {
    for (const std::string& word : list(words)) add({word});
  }

  void remove(std::string_view words) {
    for (const std::string& word : list(words)) splits_.erase(word);
  }

  std::map<std::string, std::vector<size_t>> take() { return std::move(splits_); }

 private:
  static std::string title(std::string word) {
    if (word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
    return word;
  }

  // An ending with parts: n't+'ve.
  void add_contraction(const std::string& word, const std::string& ending) {
    WordList words = {word};
    for (const std::string& part : list(replace_all(ending, "+", " "))) words.push_back(part);
    add_title(words);
    for (std::string& part : words) part = replace_all(part, kApostrophe, "");
    add_title(words);
  }

  void insert(const WordList& words) {
    std::string whole;
    std::vector<size_t> sizes;
    for (const std::string& word : words) {
      whole += word;
      sizes.push_back(word.size());
    }
    splits_[whole] = sizes;
  }

  std::map<std::string, std::vector<size_t>> splits_;
};

void add_contractions(Exceptions& exceptions) {
  constexpr const char* kWould = "'ll 'll+'ve 'd 'd+'ve";
  exceptions.add_contractions("i", "'m 'm+a");
  exceptions.add_contractions("i you he she it we they", kWould);
  exceptions.add_contractions("i you we they", "'ve");
  exceptions.add_contractions("you we they", "'re");
  exceptions.add_contractions("he she it", "'s");
  const char* const questions = "who what when where why how there that this";
  exceptions.add_contractions(questions, "'s");
  exceptions.add_contractions(questions, kWould);
  exceptions.add_contractions("these those", kWould);
  exceptions.add_contractions("who what when where why how there these those", "'re 've");
  exceptions.add_contractions(
      "ca could do does did had may might must need ought sha should wo would", "n't n't+'ve");
  exceptions.add_contractions("could might must should would", "'ve");
  exceptions.add_contractions("ai are is was were have has dare", "n't");
  for (int hour = 1; hour <= 12; ++hour) {
    for (const char* half : {"a.m.", "am", "p.m.", "pm"}) {
      exceptions.add({fmt::format("{}", hour), half});
    }
  }
  for (const auto& [first, second] :
       {std::pair("can", "not"), std::pair("gon", "na"), std::pair("got", "ta"),
        std::pair("let", "'s"), std::pair("c'm", "on"), std::pair("not", "'ve"),
        std::pair("not", "ve")}) {
    exceptions.add_title({first, second});
  }
  exceptions.add({"y'", "all"});
  exceptions.add({"y", "all"});
  exceptions.add_title({"how", "'d", "'y"});
  // These are words of their own far more often.
  exceptions.remove(
      "Ill ill Its its Hell hell Shell shell Shed shed were Were Well well Whore whore");
}

void add_whole_words(Exceptions& exceptions) {
  for (const std::string& word : list("doin goin nothin nuthin ol somethin lovin havin")) {
    exceptions.add_title({word});
    exceptions.add_title({word + "'"});
  }
  exceptions.add_whole("'em em 'll ll 'nuff nuff 'S 's \u2018S \u2018s 're 'd ' '' and/or w/o");
  exceptions.add_whole("'Cause 'cause 'cos 'Cos 'coz 'Coz 'cuz 'Cuz 'bout");
  exceptions.add_whole("ma'am Ma'am o'clock O'clock");
  exceptions.add_whole(
      "a.m. p.m. e.g. E.g. E.G. i.e. I.e. I.E. vs. v.s. D.C. Ph.D. "
      "Adm. Bros. co. Co. Corp. Dr. Gen. Gov. Inc. Jr. Ltd. Md. Messrs. Mo. Mont. Mr. Mrs. Ms. Mt. "
      "Prof. Rep. Rev. Sen. St. "
      "Jan. Feb. Mar. Apr. Jun. Jul. Aug. Sep. Sept. Oct. Nov. Dec. "
      "Ak. Ala. Ariz. Ark. Calif. Colo. Conn. Del. Fla. Ga. Ia. Id. Ill. Ind. Kan. Kans. Ky. La. "
      "Mass. Mich. Minn. Miss. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Nev. Okla. Ore. Pa. S.C. "
      "Tenn. Va. Wash. Wis.");
  for (char letter = 'a'; letter <= 'z'; ++letter) exceptions.add({std::string{letter, '.'}});
  exceptions.add_whole("ä. ö. ü. C++ <space> \\t \\n \u2014 \\\")");
  for (const char* scale : {"c", "f", "k", "C", "F", "K"}) exceptions.add({"°", scale, "."});
}

void add_emoticons(Exceptions& exceptions) {
  exceptions.add_whole(
      ":) :-) :)) :-)) :))) :-))) (: (-: :( :-( :(( :-(( :((( :-((( ): )-: :] :-] [: [-: "
      "]= =] [= =[ =) (= =( >:( :o) (o: :} :-} 8) 8-) (-8 ;) ;-) (; (-; "
      ":') :'-) :'( :'-( :/ :-/ =/ =| :| :-| "
      ":1 :P :-P :p :-p :O :-O :o :-o :0 :-0 :() >:o :* :-* :3 :-3 =3 :> :-> :X :-X :x :-x "
      ":D :-D ;D ;-D =D xD XD xDD XDD 8D 8-D");
  exceptions.add_whole(
      "^_^ ^__^ ^___^ >.< >.> <.< ._. ;_; -_- -__- v.v V.V v_v V_V o_o o_O O_o O_O 0_o o_0 0_0 "
      "o.O O.o O.O o.o 0.0 o.0 0.o @_@ <3 <33 <333 </3 "
      "(^_^) (-_-) (._.) (>_<) (*_*) (¬_¬) ಠ_ಠ ಠ︵ಠ (ಠ_ಠ) ¯\\(ツ)/¯ (╯°□°）╯︵┻━┻ ><(((*>");
}

}  // namespace

const std::map<std::string, std::vector<size_t>>& english_exceptions() {
  static const std::map<std::string, std::vector<size_t>> splits = [] {
    Exceptions exceptions;
    add_contractions(exceptions);
    add_whole_words(exceptions);
    add_emoticons(exceptions);
    return exceptions.take();
  }();
  return splits;
}

}  // namespace skein
