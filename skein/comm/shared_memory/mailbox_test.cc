#include "skein/comm/shared_memory/mailbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace skein {
namespace {

using std::chrono::milliseconds;

FileDescriptor another(const Mailbox& mailbox) {
  return FileDescriptor(::fcntl(mailbox.fd(), F_DUPFD_CLOEXEC, 0));
}

TEST(Mailbox, AFullRingRefusesUntilTheOwnerTookAndTellsThatTheWriterWaits) {
  Mailbox own(3);
  Mailbox peers(another(own), 3);
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < Mailbox::kLaneEntries; ++i) {
      ASSERT_TRUE(peers.put(2, {.kind = MailboxEntry::kMessage, .number = round * 1000 + i}));
    }
    EXPECT_FALSE(own.writer_waits(2));
    EXPECT_FALSE(peers.put(2, {}));
    EXPECT_TRUE(own.writer_waits(2));
    EXPECT_FALSE(own.writer_waits(2)) << "told once";
    EXPECT_FALSE(own.take(1).has_value()) << "another lane";
    for (uint64_t i = 0; i < Mailbox::kLaneEntries; ++i) {
      const auto entry = own.take(2);
      ASSERT_TRUE(entry.has_value());
      EXPECT_EQ(entry->number, round * 1000 + i);
    }
    EXPECT_FALSE(own.take(2).has_value());
  }
}

TEST(Mailbox, TheBellWakesASleeperAndIsNotMissed) {
  Mailbox own(1);
  const uint32_t heard = own.bell();
  EXPECT_FALSE(own.sleep(heard, milliseconds(5)));
  own.ring_bell();
  EXPECT_TRUE(own.sleep(heard, std::chrono::seconds(600))) << "it rang before the sleep";
  const uint32_t again = own.bell();
  std::thread sleeper([&] { EXPECT_TRUE(own.sleep(again, std::chrono::seconds(600))); });
  while (!own.has_sleepers()) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  Mailbox(another(own), 1).ring_bell();
  sleeper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(Mailbox, WhatIsNoMailboxIsRefused) {
  const Mailbox own(2);
  EXPECT_THROW(Mailbox(another(own), 3), std::runtime_error) << "another number of lanes";
  EXPECT_THROW(Mailbox(FileDescriptor(), 2), std::runtime_error);
  FileDescriptor plain(::memfd_create("plain", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(plain.get(), 3 * 4096), 0);
  EXPECT_THROW(Mailbox(std::move(plain), 2), std::runtime_error) << "could be cut off";
}

// Whatever a peer writes over it, the owner reads within its own mapping.
TEST(Mailbox, DamageGivesWrongEntriesAndNoCrash) {
  Mailbox own(2);
  void* memory = ::mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, own.fd(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(static_cast<char*>(memory) + 4096, 0xa5, 2 * 4096);
  std::memset(static_cast<char*>(memory) + 4096, 0xff, 8);  // as many put as can be
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(own.take(0).has_value());
  own.put(1, {});
  own.writer_waits(1);
  ::munmap(memory, 3 * 4096);
}

}  // namespace
}  // namespace skein
