#include "skein/replica/secure_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/shared/heartbeat.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kBufferBytes = size_t{256} << 10;    // of a call of the kernel
constexpr size_t kMostRecordBytes = size_t{1} << 15;  // of TLS, and more
constexpr size_t kMostIdentityBytes = 128;            // that all versions of libssl take
constexpr std::string_view kLabel = "skein replica tls13";
constexpr std::string_view kProtocols = "\017skein-replica/3";  // one, with its length
constexpr unsigned char kSuite[] = {0x13, 0x01};                // TLS_AES_128_GCM_SHA256

const unsigned char* as_unsigned(const char* text) {
  return reinterpret_cast<const unsigned char*>(text);
}

bool is_timeout(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

[[noreturn]] void fail_internal(const char* what) {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  fail(ErrorCode::kInternal, "libssl cannot {}: {}", what, reason == nullptr ? "?" : reason);
}

}  // namespace

struct SecureSocket::Session {
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl{nullptr, SSL_free};
  std::string identity;
  std::array<unsigned char, 32> key = {};
  std::vector<char> out;  // encrypted, and not sent yet

  static const Session& of(SSL* ssl) {
    return *static_cast<SecureSocket*>(SSL_get_app_data(ssl))->session_;
  }

  // The key in the form that libssl takes, which frees it. Nothing: no memory.
  SSL_SESSION* known_key() const {
    SSL_SESSION* session = SSL_SESSION_new();
    const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl.get(), kSuite);
    if (session != nullptr && cipher != nullptr &&
        SSL_SESSION_set1_master_key(session, key.data(), key.size()) == 1 &&
        SSL_SESSION_set_cipher(session, cipher) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
      return session;
    }
    SSL_SESSION_free(session);
    return nullptr;
  }

  // Of the end that asks.
  static int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* size,
                       SSL_SESSION** session) {
    const Session& own = of(ssl);
    *identity = as_unsigned(own.identity.data());
    *size = own.identity.size();
    *session = own.known_key();
    return *session != nullptr ? 1 : 0;
  }

  // Of the end that is asked. With no key libssl looks for a certificate, and there is none.
  static int find_key(SSL* ssl, const unsigned char* identity, size_t size, SSL_SESSION** session) {
    const Session& own = of(ssl);
    const bool is_own = size == own.identity.size() &&
                        std::equal(identity, identity + size, as_unsigned(own.identity.data()));
    *session = is_own ? own.known_key() : nullptr;
    return 1;
  }

  static int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size,
                             const unsigned char* offered, unsigned int num_offered, void*) {
    unsigned char* found = nullptr;
    const int match =
        SSL_select_next_proto(&found, size, as_unsigned(kProtocols.data()),
                              static_cast<unsigned int>(kProtocols.size()), offered, num_offered);
    *chosen = found;
    return match == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
  }

  // libssl's way to the socket. What it writes is kept back until there is much of it.
  static int write(BIO* bio, const char* bytes, int size) {
    auto& socket = *static_cast<SecureSocket*>(BIO_get_data(bio));
    std::vector<char>& out = socket.session_->out;
    out.insert(out.end(), bytes, bytes + size);
    return out.size() < kBufferBytes || socket.flush() ? size : -1;
  }
  static int read(BIO* bio, char* bytes, int size) {
    return static_cast<SecureSocket*>(BIO_get_data(bio))->receive_plain(bytes, size);
  }
  static long control(BIO* bio, int command, long, void*) {
    auto& socket = *static_cast<SecureSocket*>(BIO_get_data(bio));
    if (command == BIO_CTRL_FLUSH) return socket.flush() ? 1 : 0;
    return command == BIO_CTRL_EOF && socket.closed_ ? 1 : 0;
  }
  static const BIO_METHOD* way() {
    static const auto* const made = [] {
      BIO_METHOD* way = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "skein socket");
      if (way == nullptr) fail_internal("make a kind of BIO");
      BIO_meth_set_write(way, write);
      BIO_meth_set_read(way, read);
      BIO_meth_set_ctrl(way, control);
      return way;
    }();
    return made;
  }

  static SSL_CTX* context() {
    static SSL_CTX* const made = [] {
      SSL_CTX* context = SSL_CTX_new(TLS_method());
      if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
          SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1 ||
          SSL_CTX_set1_groups_list(context, "X25519") != 1 ||
          SSL_CTX_set_num_tickets(context, 0) != 1 ||
          SSL_CTX_set_alpn_protos(context, as_unsigned(kProtocols.data()),
                                  static_cast<unsigned int>(kProtocols.size())) != 0) {
        fail_internal("be set up for TLS 1.3");
      }
      SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
      SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
      SSL_CTX_set_psk_use_session_callback(context, offer_key);
      SSL_CTX_set_psk_find_session_callback(context, find_key);
      SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
      SSL_CTX_set_read_ahead(context, 1);
      SSL_CTX_set_default_read_buffer_len(context, kBufferBytes);
      return context;
    }();
    return made;
  }
};

SecureSocket::SecureSocket(FileDescriptor socket, std::string address)
    : socket_(std::move(socket)), address_(std::move(address)) {
  const timeval patience{kPatienceSeconds, 0};
  const int yes = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // A machine that is gone is noticed while nobody sends.
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, &kPatienceSeconds, sizeof(int));
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, &kPatienceSeconds, sizeof(int));
}

SecureSocket::~SecureSocket() = default;

void SecureSocket::lost(const std::string& what) const {
  fail(ErrorCode::kPeerLost, "the copies of the state at {}: {}", address_, what);
}

void SecureSocket::prove(const std::string& host, const ReplicaKey& key) {
  begin(host, key, Clock::now() + std::chrono::seconds(kPatienceSeconds));
  SSL_set_connect_state(session_->ssl.get());
  SSL_set_verify(session_->ssl.get(), SSL_VERIFY_PEER, nullptr);  // no certificate is a proof
  finish();
}

void SecureSocket::expect_proof(const std::string& host, const ReplicaKey& key,
                                TimePoint deadline) {
  begin(host, key, deadline);
  SSL_set_accept_state(session_->ssl.get());
  finish();
}

void SecureSocket::begin(const std::string& host, const ReplicaKey& key, TimePoint deadline) {
  session_ = std::make_unique<Session>();
  session_->out.reserve(kBufferBytes + kMostRecordBytes);  // no exception may pass through libssl
  session_->identity = host.substr(0, kMostIdentityBytes);
  const std::string of_host = std::string(kLabel) + host;
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), as_unsigned(of_host.data()),
           of_host.size(), session_->key.data(), &size) == nullptr) {
    fail_internal("compute HMAC-SHA256");
  }
  session_->ssl.reset(SSL_new(Session::context()));
  BIO* const bio = session_->ssl == nullptr ? nullptr : BIO_new(Session::way());
  if (bio == nullptr) fail_internal("make a connection");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(session_->ssl.get(), bio, bio);  // which frees it
  SSL_set_app_data(session_->ssl.get(), this);
  deadline_ = deadline;
}

void SecureSocket::finish() {
  SSL* const ssl = session_->ssl.get();
  ERR_clear_error();
  if (SSL_do_handshake(ssl) != 1) fail_as_libssl_says();
  const unsigned char* protocol = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  const bool is_right = size + 1 == kProtocols.size() &&
                        std::equal(protocol, protocol + size, as_unsigned(&kProtocols[1]));
  if (SSL_session_reused(ssl) != 1 || !is_right) lost("it does not prove that it is of this run");
  deadline_ = TimePoint::max();
}

void SecureSocket::fail_as_libssl_says() const {
  if (!problem_.empty()) lost(problem_);
  const unsigned long code = ERR_peek_error();
  switch (ERR_GET_REASON(code)) {
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:      // the proof is wrong, by the standard
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:  // the same, by OpenSSL
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      lost(
          "it does not know this run's secret (SKEIN_JOB_SECRET, launch.secret_file), or was "
          "started again since");
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
    case SSL_R_NO_APPLICATION_PROTOCOL:
      lost("it is of another version, which passes copies on in another way");
    default:
      break;
  }
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  lost(reason == nullptr ? "the connection was closed" : reason);
}

bool SecureSocket::wait_for_bytes() {
  using std::chrono::milliseconds;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()).count();
    pollfd one{socket_.get(), POLLIN, 0};
    const int found = ::poll(&one, 1, static_cast<int>(std::max<int64_t>(0, left)));
    if (found != 0 && !(found < 0 && errno == EINTR)) return true;
    if (found == 0 && left <= 0) return false;
  }
}

int SecureSocket::receive_plain(char* bytes, int size) {
  while (true) {
    if (deadline_ != TimePoint::max() && !wait_for_bytes()) {
      problem_ = kSilent;
      return -1;
    }
    const ssize_t got = ::recv(socket_.get(), bytes, static_cast<size_t>(size), 0);
    if (got < 0 && errno == EINTR) continue;
    closed_ = got == 0;
    if (got < 0) problem_ = is_timeout(errno) ? kSilent : errno_text(errno);
    return static_cast<int>(got);
  }
}

bool SecureSocket::flush() {
  std::span<const char> bytes = session_->out;
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      problem_ = is_timeout(errno) ? kSilent : errno_text(errno);
      return false;
    }
    heartbeat::tick();
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  session_->out.clear();
  return true;
}

void SecureSocket::send(std::span<const std::byte> bytes, bool more) {
  ERR_clear_error();
  while (!bytes.empty()) {
    size_t sent = 0;
    const size_t piece = std::min(bytes.size(), kPieceBytes);
    if (SSL_write_ex(session_->ssl.get(), bytes.data(), piece, &sent) != 1) fail_as_libssl_says();
    bytes = bytes.subspan(sent);
    sent_ += static_cast<int64_t>(sent);
    if (sent_ >= kBytesOfAKey) renew_key();
  }
  if (!more && !flush()) lost(problem_);
}

bool SecureSocket::receive(std::span<std::byte> bytes) {
  ERR_clear_error();
  for (bool is_first = true; !bytes.empty(); is_first = false) {
    size_t got = 0;
    if (SSL_read_ex(session_->ssl.get(), bytes.data(), std::min(bytes.size(), kPieceBytes), &got) !=
        1) {
      if (is_first && closed_ && problem_.empty()) return false;
      fail_as_libssl_says();
    }
    heartbeat::tick();
    bytes = bytes.subspan(got);
  }
  return true;
}

void SecureSocket::wait() const {
  if (SSL_has_pending(session_->ssl.get()) == 1) return;
  pollfd one{socket_.get(), POLLIN, 0};
  while (::poll(&one, 1, -1) < 0 && errno == EINTR) {
  }
}

void SecureSocket::renew_key() {
  sent_ = 0;
  if (SSL_key_update(session_->ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
    fail_as_libssl_says();
  }
}

}  // namespace skein
