// Languages are those of fastText's predictLine, to the bit, whatever the model and the text.
#include "skein/prepare/clean/language/language.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

#include "tests/data/fasttext_testing.h"
#include "tests/error_of.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;

using Predictions = std::vector<std::pair<double, std::string>>;

class Reference {
 public:
  explicit Reference(const fs::path& model) { model_.loadModel(model.string()); }

  Predictions predict(std::string text) const {
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::istringstream line(text + "\n");
    std::vector<std::pair<fasttext::real, std::string>> found;
    model_.predictLine(line, found, -1, 0);
    Predictions predictions;
    for (const auto& [probability, label] : found) {
      predictions.emplace_back(probability, label.substr(std::string("__label__").size()));
    }
    return predictions;
  }

 private:
  fasttext::FastText model_;
};

std::string random_word(std::mt19937& rng) {
  static const std::vector<std::string> words = {
      "the",       "river",        "Fluss",       "gefroren", "muehle", "lamp",
      "</s",       "</S>",         "</s>x",       "<",        ">",      "a",
      "__label__", "__label__en",  "__label__xx", "__label",  "\xff",   "\x80\x80",
      "\xe2\x82",  "naïve",        "река",        "川",       "\x01",   "\x1c",
      "\xc2\xa0",  "\xe3\x80\x80", "der\xf0\x9f", "--",       "2.5",    "</s>"};
  if (rng() % 200 == 0) return words.back();
  if (rng() % 4 != 0) return words[rng() % (words.size() - 1)];
  std::string word;
  const size_t size = 1 + rng() % (rng() % 8 == 0 ? 100 : 12);
  for (size_t i = 0; i < size; ++i) word += static_cast<char>(rng() % 256);
  return word;
}

std::string random_text(std::mt19937& rng) {
  static const std::string blanks[] = {" ",
                                       " ",
                                       " ",
                                       "\n",
                                       "\r\n",
                                       "\t",
                                       "\v",
                                       "\f",
                                       std::string(1, '\0'),
                                       "  \n ",
                                       std::string(70, ' '),
                                       ""};
  std::string text;
  for (size_t n = rng() % (rng() % 10 == 0 ? 1500 : 40); n > 0; --n) {
    text += blanks[rng() % std::size(blanks)] + random_word(rng);
  }
  return text + (rng() % 2 == 0 ? " " : "");
}

std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts = {"",      " ",        "\n\n",           std::string(3, '\0'),
                                    "</s>",  "</s> the", "__label__en",    "the",
                                    "lamp ", " lamp",    "the </s> fluss", "\xff\xfe"};
  // Around the sizes of chunks, and of what is remembered of a word.
  for (const size_t size : {7, 8, 15, 16, 17, 31, 32, 48, 55, 56, 57, 63, 64, 65, 113, 1000}) {
    texts.push_back(std::string(size, 'x'));
    texts.push_back(std::string(size, 'y') + " the " + std::string(size, ' ') + "mill");
  }
  texts.push_back(std::string(100000, 'z') + " fluss");
  for (int i = 0; i < 3000; ++i) texts.back() += " muehle";
  return texts;
}

class Language : public testing::Test {
 protected:
  void expect_equal(const fs::path& model, int num_texts = 300) {
    const Reference reference(model);
    LanguageDetector detector(std::make_shared<const LanguageModel>(model));
    std::vector<std::string> texts = hostile_texts();
    std::mt19937 rng(3);
    for (int i = 0; i < num_texts; ++i) texts.push_back(random_text(rng));
    for (const std::string& text : texts) expect_equal(detector, reference, text);
  }

  static void expect_equal(LanguageDetector& detector, const Reference& reference,
                           const std::string& text) {
    const Predictions expected = reference.predict(text);
    Predictions found;
    for (const auto& [language, probability] : detector.predict(text)) {
      found.emplace_back(probability, language);
    }
    ASSERT_EQ(found, expected) << text.substr(0, 200);
    for (const auto& [probability, language] : expected) {
      EXPECT_FALSE(detector.is_in(text, {language}, probability));
      EXPECT_TRUE(detector.is_in(text, {language}, std::nextafter(probability, -1)));
    }
  }

  test::TempFolder folder_;
};

TEST_F(Language, IsAsFastTextTellsIt) {
  const std::vector<std::vector<std::string>> models = {
      {},
      {"-minn", "2", "-maxn", "4", "-bucket", "3000"},
      {"-minn", "1", "-maxn", "3", "-bucket", "100", "-loss", "hs", "-dim", "16"},
      {"-minn", "0", "-maxn", "1", "-bucket", "100", "-loss", "ova", "-dim", "19"},
      {"-loss", "ns", "-dim", "4"},
      {"-minn", "3", "-maxn", "70", "-bucket", "1001", "-dim", "35", "-minCount", "1000"},
      {"-wordNgrams", "2", "-bucket", "100"},
      {"-wordNgrams", "3", "-minn", "2", "-maxn", "2", "-bucket", "100", "-loss", "hs"}};
  for (const std::vector<std::string>& options : models) {
    SCOPED_TRACE(testing::PrintToString(options));
    expect_equal(test::train_classifier(folder_.path(), options));
  }
}

TEST_F(Language, OfQuantizedModelsIsAsFastTextTellsIt) {
  for (const bool qnorm : {false, true}) {
    for (const size_t cutoff : {0, 300}) {
      SCOPED_TRACE(fmt::format("qnorm {}, cutoff {}", qnorm, cutoff));
      const auto quantize = [&](fasttext::FastText& model, fasttext::Args args) {
        args.qnorm = qnorm;
        args.cutoff = cutoff;
        args.dsub = 3;
        model.quantize(args);
      };
      expect_equal(test::train_classifier(
                       folder_.path(),
                       {"-minn", "2", "-maxn", "4", "-bucket", "3000", "-loss", "hs", "-dim", "16"},
                       quantize),
                   100);
    }
  }
}

TEST_F(Language, IsTheSameWhenMoreWordsCameThanAreRemembered) {
  const fs::path model =
      test::train_classifier(folder_.path(), {"-minn", "2", "-maxn", "4", "-bucket", "3000"});
  const Reference reference(model);
  LanguageDetector detector(std::make_shared<const LanguageModel>(model));
  for (int i = 0; i < 4; ++i) {
    std::string text = "the river";
    for (int j = 0; j < 70000; ++j) text += fmt::format(" {:x}", j * (i % 3 + 1));
    expect_equal(detector, reference, text);
  }
}

TEST_F(Language, RefusesWhatIsNoClassifier) {
  const auto error_of = [](const fs::path& path) {
    return test::error_of([&] { LanguageModel model(path); });
  };
  const fs::path model =
      test::train_classifier(folder_.path(), {"-minn", "2", "-maxn", "3", "-bucket", "50"});
  const std::string bytes = read_file(model);
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 20) {
    write_file_atomic(folder_ / "cut", std::string_view(bytes).substr(0, size));
    EXPECT_THAT(error_of(folder_ / "cut"), HasSubstr("ends early")) << size;
  }
  // Numbers of the file's head and of its dictionary, made negative or large.
  for (size_t at = 0; at < 120; ++at) {
    for (const char value : {'\xff', '\x7f'}) {
      std::string damaged = bytes;
      damaged[at] = value;
      write_file_atomic(folder_ / "damaged", damaged);
      error_of(folder_ / "damaged");  // refused, or harmless, but no crash
    }
  }
  fasttext::Args args;
  args.parseArgs({"fasttext", "skipgram", "-input", (folder_ / "lines.txt").string(), "-output",
                  (folder_ / "vectors").string(), "-dim", "4", "-epoch", "1", "-thread", "1",
                  "-verbose", "0", "-bucket", "10"});
  fasttext::FastText vectors;
  vectors.train(args);
  vectors.saveModel((folder_ / "vectors.bin").string());
  EXPECT_THAT(error_of(folder_ / "vectors.bin"), HasSubstr("tells no labels"));
}

}  // namespace
}  // namespace skein
