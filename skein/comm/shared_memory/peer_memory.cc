#include "skein/comm/shared_memory/peer_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <stdexcept>

#include "skein/base/error.h"

namespace skein {
namespace {

FileDescriptor opened_process(int32_t process) {
  FileDescriptor watch(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (watch.get() < 0) {
    throw std::runtime_error(
        fmt::format("its process {} is not to be seen from here: {}", process, errno_text(errno)));
  }
  return watch;
}

FileDescriptor opened_mailbox(const MemoryOffer& offer) {
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.process, offer.mailbox);
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    throw std::runtime_error(fmt::format("{} cannot be opened: {}", path, errno_text(errno)));
  }
  return file;
}

}  // namespace

PeerMemory::PeerMemory(const MemoryOffer& offer, int num_lanes)
    : process_(offer.process),
      watch_(opened_process(offer.process)),
      mailbox_(opened_mailbox(offer), num_lanes) {
  uint64_t token = 0;
  if (const std::string problem = read(&token, offer.token_address, sizeof token);
      !problem.empty()) {
    throw std::runtime_error(problem);
  }
  if (token != offer.token) {
    throw std::runtime_error(fmt::format("process {} is another one here", offer.process));
  }
}

std::string PeerMemory::read(void* to, uint64_t address, int64_t bytes) const {
  iovec local = {.iov_base = to, .iov_len = static_cast<size_t>(bytes)};
  iovec remote = {.iov_base = reinterpret_cast<void*>(address), .iov_len = local.iov_len};
  while (local.iov_len > 0) {
    const ssize_t got =
        retry_interrupted([&] { return ::process_vm_readv(process_, &local, 1, &remote, 1, 0); });
    if (got <= 0) {
      return fmt::format("process_vm_readv of {} bytes of process {}: {}", bytes, process_,
                         got == 0 ? "nothing is there" : errno_text(errno));
    }
    for (iovec* part : {&local, &remote}) {
      part->iov_base = static_cast<char*>(part->iov_base) + got;
      part->iov_len -= static_cast<size_t>(got);
    }
  }
  return "";
}

bool PeerMemory::has_ended() const {
  pollfd watch = {.fd = watch_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&watch, 1, 0) > 0;
}

}  // namespace skein
