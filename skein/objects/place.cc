#include "skein/objects/place.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <span>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/paths.h"

namespace skein {
namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

// What stands at the front of `text`.
std::string_view name_at(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && (size == 0 ? begins_name(text[0]) : is_in_name(text[size]))) ++size;
  return text.substr(0, size);
}

// Puts in the variables of one place.
class PlaceVariables {
 public:
  PlaceVariables(std::string_view written, const std::string& setting)
      : written_(written), setting_(setting) {}

  std::string put_in() const {
    std::string text;
    for (std::string_view rest = written_; !rest.empty();) {
      const size_t dollar = std::min(rest.find('$'), rest.size());
      text += rest.substr(0, dollar);
      rest.remove_prefix(dollar);
      if (!rest.empty()) rest.remove_prefix(take(rest, text));
    }
    return text;
  }

 private:
  // `rest` begins with a dollar. Returns how much of it was taken.
  size_t take(std::string_view rest, std::string& text) const {
    const std::string_view behind = rest.substr(1);
    if (behind.starts_with('$')) {
      text += '$';
      return 2;
    }
    if (behind.starts_with('{')) {
      const std::string_view name = name_at(behind.substr(1));
      if (name.empty() || behind.substr(1 + name.size(), 1) != "}") {
        refuse("the text behind ${ is no variable: expected ${NAME}, or $$ for a dollar");
      }
      text += value_of(std::string(name));
      return 3 + name.size();
    }
    if (behind.starts_with('(')) {
      refuse("no command is run in a path: expected ${NAME}, or $$ for a dollar");
    }
    if (const std::string_view name = name_at(behind); !name.empty()) {
      refuse(fmt::format(
          "${0} would be a part of a name: write ${{{0}}} for the variable, or $${0} for "
          "a name with a dollar",
          name));
    }
    text += '$';
    return 1;
  }

  std::string value_of(const std::string& name) const {
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0') return value;
    if (name == "config_dir") {
      refuse("the folder of the configuration file is {config_dir}, without the dollar");
    }
    refuse(fmt::format("the environment variable {} is {}: set it, or write the path in full", name,
                       value == nullptr ? "not set" : "empty"));
  }

  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorCode::kUsage, "{} is '{}': {}", setting_, written_, why);
  }

  std::string_view written_;
  const std::string& setting_;
};

struct OtherStore {
  std::string_view scheme;
  std::string_view what;
  std::string_view help;
};

constexpr std::string_view kHub =
    "`hf download NAME --local-dir FOLDER` brings a model, with --repo-type dataset a data set; "
    "then name the folder";
constexpr std::string_view kGoogle =
    "it speaks S3's protocol as well: an HMAC key in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "AWS_ENDPOINT_URL=https://storage.googleapis.com, and s3://BUCKET/KEY; or copy with `gcloud "
    "storage cp`";
constexpr std::string_view kAzure = "copy with `azcopy copy`, or mount it with blobfuse2";
constexpr std::string_view kWeb = "fetch it first, such as with `curl -LO URL`";
constexpr std::string_view kHadoop = "write s3:// for it";

constexpr OtherStore kOtherStores[] = {
    {"gs", "Google Cloud Storage", kGoogle},
    {"gcs", "Google Cloud Storage", kGoogle},
    {"az", "Azure's storage", kAzure},
    {"abfs", "Azure's storage", kAzure},
    {"abfss", "Azure's storage", kAzure},
    {"wasb", "Azure's storage", kAzure},
    {"wasbs", "Azure's storage", kAzure},
    {"hf", "the Hub of Hugging Face", kHub},
    {"http", "the web", kWeb},
    {"https", "the web", kWeb},
    {"ftp", "the web", kWeb},
    {"file", "a path of this machine", "write the path alone, /… without file://"},
    {"s3a", "Hadoop's name for S3", kHadoop},
    {"s3n", "Hadoop's name for S3", kHadoop},
    {"hdfs", "Hadoop's file system", "copy with `hdfs dfs -get`, or mount it"},
    {"etcd", "etcd", "only launch.rendezvous may lie there"},
    {"etcds", "etcd with TLS", "only launch.rendezvous may lie there"},
};

// "gs" of gs://b/x and of gs:/b/x, in small letters; "" where `text` is a path.
std::string scheme_of(std::string_view text) {
  const size_t colon = text.find(":/");
  if (colon == 0 || colon == text.npos || std::isalpha(static_cast<unsigned char>(text[0])) == 0) {
    return "";
  }
  std::string scheme(text.substr(0, colon));
  for (char& c : scheme) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) == 0 && c != '+' && c != '.' && c != '-') return "";
    c = static_cast<char>(std::tolower(letter));
  }
  return scheme;
}

const char* expected(PlaceUse use) {
  switch (use) {
    case PlaceUse::kDisk:
      return "a path of a disk";
    case PlaceUse::kDiskOrStore:
      return "a path of a disk, or s3://BUCKET/KEY";
    case PlaceUse::kDiskOrEtcd:
      return "a folder that every machine sees, or etcd://HOST:PORT[,HOST:PORT…]/PREFIX "
             "(etcds:// with TLS)";
  }
  return "";
}

[[noreturn]] void refuse_url(std::string_view text, const std::string& scheme,
                             const std::string& named, PlaceUse use) {
  const auto* other = std::find_if(std::begin(kOtherStores), std::end(kOtherStores),
                                   [&](const OtherStore& one) { return one.scheme == scheme; });
  if (scheme == "s3" && use == PlaceUse::kDiskOrStore) {
    fail(ErrorCode::kUsage, "{}: expected s3://BUCKET/KEY, in small letters and with two slashes",
         named);
  }
  if (scheme == "s3") {
    fail(ErrorCode::kUsage,
         "{}: an object of a store, which this cannot be: expected {}; copy it with `aws s3 cp`",
         named, expected(use));
  }
  if (other == std::end(kOtherStores)) {
    fail(ErrorCode::kUsage,
         "{}: {}:// is not known here: expected {}; a folder of that name is ./{}", named, scheme,
         expected(use), text);
  }
  fail(ErrorCode::kUsage, "{}: {}:// is not known here ({}): expected {}; {}", named, scheme,
       other->what, expected(use), other->help);
}

void check_scheme(std::string_view text, const std::string& named, PlaceUse use) {
  const std::string scheme = scheme_of(text);
  if (scheme.empty()) return;
  const bool is_etcd = text.starts_with("etcd://") || text.starts_with("etcds://");
  if (use == PlaceUse::kDiskOrEtcd && is_etcd) return;
  if (use != PlaceUse::kDiskOrStore || !is_object_url(text)) refuse_url(text, scheme, named, use);
}

}  // namespace

Place Place::parse(std::string_view written, const std::string& setting, PlaceUse use) {
  const std::string text = expand_home(PlaceVariables(written, setting).put_in(), setting);
  const std::string named = fmt::format("{} is '{}'", setting, written);
  check_scheme(text, named, use);
  try {
    Place place(text);
    place.written_ = written;
    return place;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", named, error.what()));
  }
}

Place::Place(fs::path meant, FromMeaning /*unused*/)
    : written_(meant.native()), path_(std::move(meant)) {
  if (is_object_url(path_)) object_ = parse_object_url(path_.native());
}

Place Place::with_suffix(std::string_view suffix) const {
  Place place = *this;
  place.written_ += suffix;
  place.path_ += suffix;
  if (place.object_) place.object_->key += suffix;
  return place;
}

std::string place_text(std::string_view meant) {
  std::string text;
  for (size_t i = 0; i < meant.size(); ++i) {
    text += meant[i];
    if (meant[i] != '$' || i + 1 == meant.size()) continue;
    const char next = meant[i + 1];
    if (next == '$' || next == '{' || next == '(' || begins_name(next)) text += '$';
  }
  return text.starts_with('~') ? "./" + text : text;
}

}  // namespace skein
