#include "skein/store/signed_store.h"

#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr std::string_view kSeal = "\nhmac-sha256 ";
constexpr size_t kSealBytes = kSeal.size() + 64 + 1;
constexpr const char* kRun = "run";

class SignedStore : public KeyValueStore {
 public:
  SignedStore(std::unique_ptr<KeyValueStore> store, const std::string& place,
              const JobSecret& secret)
      : store_(std::move(store)), place_(place), secret_(secret) {
    std::optional<std::string> run = store_->read(kRun);
    if (!run && !store_->names("").empty() && !(run = store_->read(kRun))) {
      fail(ErrorCode::kNotFound,
           "{} is no start of this run: it holds records, but none that says which run they are of",
           text());
    }
    if (!run && store_->create(kRun, sealed(kRun, "skein"))) return;
    if (!run) run = store_->read(kRun);
    if (run && opened(kRun, *run)) return;
    fail(ErrorCode::kUsage,
         "{} belongs to a run with another secret than that of {}: give each run a "
         "launch.rendezvous of its own, and every machine of a run the same secret "
         "(launch.secret_file, SKEIN_JOB_SECRET)",
         text(), secret_.source());
  }

  const std::string& text() const override { return store_->text(); }

  std::optional<std::string> read(const std::string& name) override {
    const std::optional<std::string> value = store_->read(name);
    if (!value) return std::nullopt;
    std::optional<std::string> plain = opened(name, *value);
    if (!plain) fail(ErrorCode::kInvalid, "{}", not_signed(name));
    return plain;
  }

  std::vector<std::string> names(const std::string& prefix) override {
    return store_->names(prefix);
  }

  void visit(const std::string& prefix, const std::set<std::string>& known,
             const Visit& visit) override {
    store_->visit(prefix, known, [&](const std::string& name, Result<std::string> value) {
      if (!value.ok()) return visit(name, std::move(value));
      if (std::optional<std::string> plain = opened(name, value.value())) {
        return visit(name, *std::move(plain));
      }
      check_still_ours();
      visit(name, Error(ErrorCode::kInvalid, not_signed(name)));
    });
  }

  void write(const std::string& name, const std::string& value) override {
    store_->write(name, sealed(name, value));
  }
  bool create(const std::string& name, const std::string& value) override {
    return store_->create(name, sealed(name, value));
  }
  void remove(const std::string& name) override { store_->remove(name); }
  void remove_all() override { store_->remove_all(); }

 private:
  std::string seal_of(const std::string& name, std::string_view value) const {
    std::string seal(kSeal);
    for (const char byte : secret_.sign({"record", place_, name, value})) {
      seal += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return seal + "\n";
  }
  std::string sealed(const std::string& name, const std::string& value) const {
    return value + seal_of(name, value);
  }
  // Nothing: the signature is missing or wrong.
  std::optional<std::string> opened(const std::string& name, const std::string& text) const {
    if (text.size() < kSealBytes) return std::nullopt;
    const std::string_view value(text.data(), text.size() - kSealBytes);
    const std::string expected = seal_of(name, value);
    int difference = 0;
    for (size_t i = 0; i < kSealBytes; ++i) difference |= expected[i] ^ text[value.size() + i];
    return difference == 0 ? std::optional(std::string(value)) : std::nullopt;
  }
  // Somebody else has made the place meanwhile: no machine that comes now will know this secret.
  void check_still_ours() {
    const std::optional<std::string> run = store_->read(kRun);
    if (!run || opened(kRun, *run)) return;
    fail(ErrorCode::kUsage,
         "{} was made again since this machine came, with another secret than the secret that this "
         "machine has from {}: expected one secret for all machines of a run; the folder of the "
         "rendezvous may have been removed while it was in use. Stop `skein train` on every "
         "machine, then start it again on each",
         text(), secret_.source());
  }
  std::string not_signed(const std::string& name) const {
    return fmt::format(
        "{}/{} is not signed with the run's secret that this machine has from {}: it is torn, "
        "another run's, or of a machine with another secret, such as a machine that was here "
        "before the folder of the rendezvous was removed and made again. If so, stop `skein train` "
        "on every machine, then start it again on each",
        text(), name, secret_.source());
  }

  const std::unique_ptr<KeyValueStore> store_;
  const std::string place_;
  const JobSecret secret_;
};

class SignedRoot : public StoreRoot {
 public:
  SignedRoot(std::unique_ptr<StoreRoot> root, const JobSecret& secret)
      : root_(std::move(root)), secret_(secret) {}

  const std::string& text() const override { return root_->text(); }
  std::vector<std::string> places() override { return root_->places(); }
  std::unique_ptr<KeyValueStore> open(const std::string& place) override {
    return std::make_unique<SignedStore>(root_->open(place), place, secret_);
  }

 private:
  const std::unique_ptr<StoreRoot> root_;
  const JobSecret secret_;
};

}  // namespace

std::unique_ptr<StoreRoot> signed_root(std::unique_ptr<StoreRoot> root, const JobSecret& secret) {
  return std::make_unique<SignedRoot>(std::move(root), secret);
}

}  // namespace skein
