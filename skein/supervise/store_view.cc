#include "skein/supervise/store_view.h"

#include <algorithm>
#include <numeric>

namespace skein {

SharedGeneration::SharedGeneration(GenerationRecord record) {
  auto held = std::make_shared<Held>();
  held->record = std::move(record);
  const auto& members = held->record.members;
  held->by_name.resize(members.size());
  std::iota(held->by_name.begin(), held->by_name.end(), size_t{0});
  std::sort(held->by_name.begin(), held->by_name.end(),
            [&](size_t a, size_t b) { return members[a].host < members[b].host; });
  held_ = std::move(held);
}

const GenerationRecord::Member* SharedGeneration::member(const std::string& host) const {
  if (!held_) return nullptr;
  const auto& members = held_->record.members;
  const auto found = std::lower_bound(
      held_->by_name.begin(), held_->by_name.end(), host,
      [&](size_t index, const std::string& name) { return members[index].host < name; });
  const bool is_there = found != held_->by_name.end() && members[*found].host == host;
  return is_there ? &members[*found] : nullptr;
}

const HostRecord* StoreView::host(const std::string& name) const {
  const auto* const found = std::lower_bound(
      hosts.begin(), hosts.end(), name,
      [](const HostRecord& record, const std::string& wanted) { return record.host < wanted; });
  return found == hosts.end() || found->host != name ? nullptr : found;
}

void StoreView::sort() {
  const auto by_name = [](const HostRecord& a, const HostRecord& b) { return a.host < b.host; };
  if (std::is_sorted(hosts.begin(), hosts.end(), by_name)) return;
  std::vector<HostRecord>& own = hosts.change();
  std::sort(own.begin(), own.end(), by_name);
}

}  // namespace skein
