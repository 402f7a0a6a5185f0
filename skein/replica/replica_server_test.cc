// Two servers stand for two machines, over the loopback.
#include "skein/replica/replica_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "skein/replica/replica_search.h"
#include "skein/replica/replica_writer.h"
#include "tests/checkpoint/checkpoint_ranks_state.h"

namespace skein {
namespace {

template <typename Condition>
bool wait_until(const Condition& holds) {
  for (int i = 0; i < 10000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return holds();
}

// Two workers each, whose state is that of four ranks.
struct Machine {
  Machine() : page(2), server(2, "127.0.0.1", "0123456789abcdef0123456789abcdef") {}

  void save(const test::RanksState& state, int index, int rank, int64_t step) {
    ReplicaPlace place = server.place(index);
    place.passes_on = false;  // this test asks the page
    ReplicaWriter writer({.place = place, .save = "g1", .rank = rank, .num_ranks = 4},
                         state.specs(rank));
    std::vector<std::vector<std::byte>> bytes;
    std::vector<View> views;
    for (size_t i = 0; i < state.tensors().size(); ++i) {
      const TensorType& type = state.tensors()[i].type;
      bytes.push_back(state.local(step, i, rank));
      views.push_back(
          View::contiguous(bytes[i].data(), type.dtype, type.local_shape(state.mesh())));
    }
    writer.begin(state.state(step, rank), views);
    ASSERT_TRUE(wait_until([&] { return writer.is_complete(); }));
    page.slot(index).saved = 1;
    const uint64_t one = 1;
    ASSERT_EQ(::write(place.event, &one, sizeof one), ssize_t{sizeof one});
  }

  HeartbeatPage page;
  ReplicaServer server;
};

TEST(ReplicaServer, AStateIsWholeWithoutOneOfTwoMachines) {
  const test::RanksState state(Mesh::standard(1, 2, 1, 2));
  Machine first;
  {
    Machine lost;
    first.server.begin_generation(1, first.page, lost.server.endpoint());
    lost.server.begin_generation(1, lost.page, first.server.endpoint());
    for (int i = 0; i < 2; ++i) first.save(state, i, i, 41);
    for (int i = 0; i < 2; ++i) lost.save(state, i, 2 + i, 41);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(wait_until([&] { return first.page.slot(i).passed_on == 1; }));
      EXPECT_TRUE(wait_until([&] { return lost.page.slot(i).passed_on == 1; }));
    }
  }
  first.server.end_generation();
  std::vector<ReplicaFindings> findings;
  for (int i = 0; i < 2; ++i) {
    findings.push_back(ReplicaFindings::parse(look_at_replicas(first.server.place(i)).text()));
  }
  const auto save = newest_whole(findings);
  ASSERT_TRUE(save);
  EXPECT_EQ(save->step, 41);
  EXPECT_EQ(next_number(findings, save), 2);
  const ReplicaPlace here = first.server.place(0);
  ReplicaPlace elsewhere = here;
  elsewhere.kept.clear();  // all of it comes over the network
  for (const ReplicaPlace& place : {here, elsewhere}) {
    const auto reader = open_save(*save, place, describe_save(*save, place));
    EXPECT_EQ(reader->state(), state.whole_state(41));
    const test::RanksState other(Mesh::standard(1, 1, 1, 3));
    for (int rank = 0; rank < 3; ++rank) {
      for (size_t i = 0; i < other.tensors().size(); ++i) {
        const TensorType& type = other.tensors()[i].type;
        const FlatRange held = type.local_range(other.mesh(), rank);
        std::vector<std::byte> found(type.local_bytes(other.mesh()), std::byte{0xee});
        reader->read_range(other.tensors()[i].name, type.local_box(other.mesh(), rank), held,
                           type.dtype, std::span(found).first(held.count * size_of(type.dtype)));
        EXPECT_TRUE(found == other.local(41, i, rank)) << other.tensors()[i].name;
      }
    }
  }
  ReplicaEndpoint wrong = first.server.endpoint();
  wrong.token.assign(32, '0');
  EXPECT_THROW(ReplicaClient(wrong).read_record(save->parts[0]), Error);
  first.server.begin_generation(2, first.page, std::nullopt);
  ReplicaMemory part(here.slots[1]);
  EXPECT_FALSE(ReplicaClient(first.server.endpoint()).put(1, 0, part));
  EXPECT_TRUE(ReplicaClient(first.server.endpoint()).put(2, 0, part));
}

}  // namespace
}  // namespace skein
