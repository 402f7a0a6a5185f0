// Two servers stand for two machines, over the loopback.
#include "skein/replica/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "skein/replica/newest_whole.h"
#include "skein/replica/writer.h"
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

const ReplicaKey kKey = {'k', 'e', 'y'}, kOther = {'o', 't', 'h', 'e', 'r'};

ReplicaPlace place_of(ReplicaServer& server, int index) {
  ReplicaPlace place = server.place(index);
  place.key = kKey;
  return place;
}

// Two workers each, whose state is that of four ranks.
struct Machine {
  Machine() : page(2), server(2, "127.0.0.1", "node.1", kKey) {}

  void save(const test::RanksState& state, int index, int rank, int64_t step,
            const std::string& name = "g1", int64_t number = 1) {
    ReplicaPlace place = server.place(index);
    place.passes_on = false;  // this test asks the page
    ReplicaWriter writer(
        {.place = place, .save = name, .first_number = number, .rank = rank, .num_ranks = 4},
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
    page.slot(index).saved = number;
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
    findings.push_back(ReplicaFindings::parse(look_at_replicas(place_of(first.server, i)).text()));
  }
  const auto save = newest_whole(findings);
  ASSERT_TRUE(save);
  EXPECT_EQ(save->step, 41);
  EXPECT_EQ(next_number(findings, save), 2);
  const ReplicaPlace here = place_of(first.server, 0);
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
  first.server.begin_generation(2, first.page, std::nullopt);
  ReplicaMemory part(here.slots[1]);
  EXPECT_FALSE(ReplicaClient(first.server.endpoint(), kKey).put(1, 0, part));
  EXPECT_TRUE(ReplicaClient(first.server.endpoint(), kKey).put(2, 0, part));
}

int64_t bytes_kept_of_others(ReplicaServer& server) {
  int64_t bytes = 0;
  const ReplicaPlace place = server.place(0);
  for (size_t i = 2 * kReplicaSlots; i < place.kept.size();
       ++i) {  // those of two own workers first
    struct stat status {};
    EXPECT_EQ(::fstat(place.kept[i], &status), 0);
    bytes += int64_t{status.st_blocks} * 512;
  }
  return bytes;
}

TEST(ReplicaServer, WhatAFormerMachineLeftIsGivenBackOnceThereIsANewerWhole) {
  const test::RanksState state(Mesh::standard(1, 2, 1, 2));
  Machine first;
  {
    Machine lost;
    lost.server.begin_generation(1, lost.page, first.server.endpoint());
    for (int i = 0; i < 2; ++i) lost.save(state, i, 2 + i, 41);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(wait_until([&] { return lost.page.slot(i).passed_on == 1; }));
    }
  }
  first.server.begin_generation(2, first.page, std::nullopt);
  first.save(state, 0, 0, 42, "g2", 2);
  EXPECT_GT(bytes_kept_of_others(first.server), 0);  // not known to be whole on all ranks
  first.save(state, 0, 0, 43, "g2", 3);
  EXPECT_TRUE(wait_until([&] { return bytes_kept_of_others(first.server) == 0; }));
}

// A put of which the first half arrives; the next one is whole.
TEST(ReplicaServer, APeerThatVanishesInTheMiddleOfAPutLeavesNothing) {
  const test::RanksState state(Mesh::standard(1, 2, 1, 2));
  Machine from, to;
  from.save(state, 0, 0, 41);
  ReplicaMemory part(from.server.place(0).slots[1]);
  const auto image = part.image();
  {
    auto socket = ReplicaSocket::connect_to(to.server.endpoint(), kKey);
    send_request(socket,
                 {.ask = ReplicaAsk::kPut, .label = *part.label(), .count = std::ssize(image)});
    ASSERT_EQ(socket.receive_number(), 1);
    socket.send(image.first(image.size() / 2));
    EXPECT_TRUE(wait_until([&] { return bytes_kept_of_others(to.server) > 0; }));
  }
  EXPECT_TRUE(wait_until([&] { return bytes_kept_of_others(to.server) == 0; }));
  ReplicaClient client(to.server.endpoint(), kKey);
  EXPECT_THROW(client.read_record(*part.label()), Error);
  EXPECT_TRUE(ReplicaClient(to.server.endpoint(), kKey).put(1, 0, part));
  EXPECT_EQ(client.read_record(*part.label()), part.record());
}

// A machine that is asked for a record of four bytes, and does with the answer what `answer` does.
Result<std::string> record_from(const std::function<void(ReplicaSocket&)>& answer) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof at;
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), size), 0);
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  std::thread machine([&] {
    ReplicaSocket socket(FileDescriptor(::accept(listener.get(), nullptr, nullptr)), "here");
    socket.expect_proof("node.1", kKey, std::chrono::steady_clock::now() + std::chrono::minutes(1));
    EXPECT_TRUE(receive_request(socket));
    socket.send_number(4);
    answer(socket);
  });
  const auto record = try_run([&] {
    ReplicaClient client({fmt::format("127.0.0.1:{}", ntohs(at.sin_port)), "node.1"}, kKey);
    return client.read_record({.save = "g1", .number = 1, .step = 41, .num_ranks = 4});
  });
  machine.join();
  return record;
}

TEST(ReplicaClient, AMachineThatVanishesInTheMiddleOfAnAnswerIsAnErrorAndNamed) {
  const auto bytes = std::as_bytes(std::span("good", 4));
  EXPECT_EQ(record_from([&](ReplicaSocket& socket) { socket.send_checked(bytes); }).value(),
            "good");
  for (const size_t before : {0, 2, 4}) {
    const auto cut = record_from([&](ReplicaSocket& socket) { socket.send(bytes.first(before)); });
    ASSERT_FALSE(cut.ok()) << before;
    EXPECT_EQ(cut.error().code(), ErrorCode::kPeerLost) << before;
    EXPECT_NE(std::string(cut.error().what()).find("127.0.0.1:"), std::string::npos);
  }
  const auto other = record_from([&](ReplicaSocket& socket) {
    socket.send(bytes);
    socket.send(std::vector<std::byte>(32, std::byte{'0'}));  // no checksum of it
  });
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), ErrorCode::kCorrupt);
}

// Whether the other end closes within a time in which it would not by itself.
bool is_closed_within(int socket, int seconds) {
  pollfd one{socket, POLLIN, 0};
  char byte = 0;
  return ::poll(&one, 1, seconds * 1000) == 1 && ::recv(socket, &byte, 1, 0) <= 0;
}

FileDescriptor stranger(const ReplicaServer& server) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto to = socket_address(server.endpoint().address);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*to), sizeof *to), 0);
  return socket;
}

TEST(ReplicaServer, StrangersMakeRoom) {
  const test::RanksState state(Mesh::standard(1, 2, 1, 2));
  Machine machine;
  machine.save(state, 0, 0, 41);
  ReplicaMemory part(machine.server.place(0).slots[1]);
  ReplicaClient member(machine.server.endpoint(), kKey);
  EXPECT_EQ(member.read_record(*part.label()), part.record());
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i <= ReplicaServer::kMostStrangers; ++i) {
    strangers.push_back(stranger(machine.server));
  }
  EXPECT_TRUE(is_closed_within(strangers.front().get(), ReplicaServer::kProofSeconds - 2));
  EXPECT_EQ(member.read_record(*part.label()), part.record());
  EXPECT_EQ(ReplicaClient(machine.server.endpoint(), kKey).read_record(*part.label()),
            part.record());
}

// A byte at a time keeps nobody's place; what is no beginning of a proof is answered at once.
TEST(ReplicaServer, AStrangerHasOnlySoLong) {
  Machine machine;
  const FileDescriptor socket = stranger(machine.server);
  const auto begin = std::chrono::steady_clock::now();
  const std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                          11);  // TLS's, to 512 bytes
  for (size_t i = 0; i < 500 && !is_closed_within(socket.get(), 0); ++i) {
    (void)::send(socket.get(), i < hello.size() ? &hello[i] : "s", 1, MSG_NOSIGNAL);
    pollfd one{socket.get(), POLLIN, 0};
    ::poll(&one, 1, 100);
  }
  EXPECT_TRUE(is_closed_within(socket.get(), ReplicaServer::kProofSeconds));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  const FileDescriptor other = stranger(machine.server);
  const std::string request(400, 'r');
  (void)::send(other.get(), request.data(), request.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(is_closed_within(other.get(), 60));
}

// Who knows another secret, or means a machine that is there no more, is refused with a reason.
TEST(ReplicaServer, WhoIsNotOfTheRunIsRefused) {
  const test::RanksState state(Mesh::standard(1, 2, 1, 2));
  Machine machine;
  machine.save(state, 0, 0, 41);
  ReplicaEndpoint former = machine.server.endpoint();
  former.host = "node.0";
  for (const auto& wrong :
       {std::pair(machine.server.endpoint(), kOther), std::pair(former, kKey)}) {
    const auto refused =
        try_run([&] { return ReplicaClient(wrong.first, wrong.second).endpoint(); });
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), ErrorCode::kPeerLost);
    EXPECT_NE(std::string(refused.error().what()).find("does not know this run's secret"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace skein
