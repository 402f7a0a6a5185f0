#include "skein/infer/page_pool.h"

#include <algorithm>

#include "skein/base/text/units.h"

namespace skein {

PagePool::PagePool(int64_t num_pages, int64_t page_size)
    : page_size_(page_size), pages_(static_cast<size_t>(num_pages)) {
  for (int32_t page = 0; page < num_pages; ++page) {
    pages_[page].place = unused_.insert(unused_.end(), page);
  }
}

std::optional<TextPages> PagePool::take(std::span<const int32_t> tokens, int64_t num_positions,
                                        int64_t max_shared) {
  TextPages text;
  const int64_t most = std::min(max_shared, std::ssize(tokens)) / page_size_;
  if (!find_shared(tokens, most, text.pages)) return std::nullopt;
  const int64_t num_own = ceil_div(num_positions, page_size_) - std::ssize(text.pages);
  const int64_t num_revived = std::count_if(text.pages.begin(), text.pages.end(),
                                            [&](int32_t page) { return pages_[page].users == 0; });
  if (num_own + num_revived > num_free()) return std::nullopt;
  for (const int32_t page : text.pages) use(page);
  int64_t serial = text.pages.empty() ? 0 : pages_[text.pages.back()].serial;
  text.num_shared = std::ssize(text.pages) * page_size_;
  for (int64_t i = 0; i < num_own; ++i) {
    const int32_t page = unused_.front();
    use(page);
    forget(pages_[page]);
    const int64_t begin = std::ssize(text.pages) * page_size_;
    text.pages.push_back(page);
    if (begin + page_size_ > std::ssize(tokens)) continue;
    const auto part = tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(page_size_));
    const auto [content, is_new] =
        by_content_.try_emplace({serial, {part.begin(), part.end()}}, page);
    if (!is_new) {  // the text may not share it, and reads the same
      serial = pages_[content->second].serial;
      continue;
    }
    pages_[page].content = content;
    pages_[page].serial = serial = ++last_serial_;
  }
  return text;
}

const PagePool::Page* PagePool::find(int64_t serial_before, std::span<const int32_t> tokens,
                                     int64_t number) const {
  const auto part =
      tokens.subspan(static_cast<size_t>(number * page_size_), static_cast<size_t>(page_size_));
  const auto known = by_content_.find({serial_before, {part.begin(), part.end()}});
  return known == by_content_.end() ? nullptr : &pages_[known->second];
}

bool PagePool::find_shared(std::span<const int32_t> tokens, int64_t most,
                           std::vector<int32_t>& found) const {
  int64_t serial = 0;
  for (int64_t i = 0; i < most; ++i) {
    const Page* page = find(serial, tokens, i);
    if (page == nullptr) return true;
    if (!page->is_read) return false;
    found.push_back(static_cast<int32_t>(page - pages_.data()));
    serial = page->serial;
  }
  return true;
}

std::optional<KnownScores> PagePool::known_scores(std::span<const int32_t> tokens,
                                                  int64_t from) const {
  KnownScores known;
  int64_t serial = 0;
  for (int64_t i = 0; i < std::ssize(tokens) / page_size_; ++i) {
    const Page* page = find(serial, tokens, i);
    if (page == nullptr) break;
    if (!page->is_read) return std::nullopt;
    const int64_t begin = i * page_size_, end = begin + page_size_;
    const size_t before = known.scores.size();
    for (int64_t token = std::max(begin, from); token < end && !page->scores.empty(); ++token) {
      const auto& score = page->scores[static_cast<size_t>(token - begin)];
      if (!score) break;
      known.scores.push_back(*score);
    }
    const int64_t needed = end - std::max(begin, from);
    if (needed > 0 && std::ssize(known.scores) - static_cast<int64_t>(before) < needed) {
      known.scores.resize(before);
      break;
    }
    known.num_tokens = end;
    serial = page->serial;
  }
  return known;
}

void PagePool::note_score(const TextPages& text, int64_t token, const TokenScore& score) {
  const auto number = static_cast<size_t>(token / page_size_);
  if (number >= text.pages.size()) return;  // nobody reads the last token of a scored text
  Page& page = pages_[text.pages[number]];
  if (page.serial == 0) return;
  if (page.scores.empty()) page.scores.resize(static_cast<size_t>(page_size_));
  page.scores[static_cast<size_t>(token % page_size_)] =
      TokenScore{.logprob = score.logprob, .best = score.best, .top = {}};
}

void PagePool::note_read(const TextPages& text, int64_t num_positions) {
  for (int64_t i = 0; i < num_positions / page_size_; ++i) {
    pages_[text.pages[static_cast<size_t>(i)]].is_read = true;
  }
}

void PagePool::give_back(const TextPages& text) {
  // The last pages first: what begins a text is of more use to others.
  for (auto page = text.pages.rbegin(); page != text.pages.rend(); ++page) {
    Page& given = pages_[*page];
    if (--given.users > 0) continue;
    if (!given.is_read) forget(given);  // its text ended early
    const auto where = given.serial == 0 ? unused_.begin() : unused_.end();
    given.place = unused_.insert(where, *page);
  }
}

void PagePool::use(int32_t page) {
  Page& used = pages_[page];
  if (used.users++ == 0) unused_.erase(used.place);
}

void PagePool::forget(Page& page) {
  if (page.serial > 0) by_content_.erase(page.content);
  page.serial = 0;
  page.is_read = false;
  page.scores.clear();
}

}  // namespace skein
