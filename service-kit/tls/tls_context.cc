#include "service-kit/tls/tls_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "tributary/protocol/assert.h"

namespace tributary::service {
namespace {

constexpr const char* kCiphers = "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
constexpr long kCertificateBytesMax = 32L << 10;  // for all certificates of the other side together
constexpr int kChainMax = 8;
constexpr long kTicketSeconds = 300;
constexpr std::string_view kSessionContext = "tributary";
constexpr mode_t kOthers = S_IRWXO;

/// Returns the first reason that OpenSSL gives, and forgets all.
std::string take_reason() {
  const unsigned long code = ERR_peek_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason was given" : reason;
}

Status refused(const std::string& path, const std::string& why) {
  return fail(Errc::bad_config, path + ": " + why);
}

Status check_readable(const std::string& path, bool secret) {
  struct stat status{};
  if (::access(path.c_str(), R_OK) != 0 || ::stat(path.c_str(), &status) != 0)
    return refused(path, std::string("the file cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refused(path, "it is no file");
  if (secret && (status.st_mode & kOthers) != 0)
    return refused(path, "everybody on this host may read the private key; `chmod o= " + path + "`");
  return {};
}

/// A key that has a password makes OpenSSL ask the terminal, unless a function says that there is none.
int no_password(char*, int, int, void*) {
  return 0;
}

/// Index of the slot in which a connection keeps the address of its TlsFault.
int fault_slot() {
  static const int slot = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return slot;
}

/// Called once for each certificate of the other side's chain, and for each fault.
int note_fault(int good, X509_STORE_CTX* checked) {
  if (good == 1) return 1;
  auto* const connection = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(checked, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const fault =
      connection == nullptr ? nullptr : static_cast<TlsFault*>(SSL_get_ex_data(connection, fault_slot()));
  if (fault == nullptr || fault->code != 0) return 0;
  fault->code = X509_STORE_CTX_get_error(checked);
  fault->depth = X509_STORE_CTX_get_error_depth(checked);
  X509* const certificate = X509_STORE_CTX_get_current_cert(checked);
  if (certificate != nullptr) fault->certificate = describe_certificate(*certificate);
  return 0;
}

Status use_own_certificate(SSL_CTX& context, const TlsFiles& files, std::int64_t& expires_at) {
  if (files.key.empty()) return refused(files.cert, "the certificate has no key; name its file, too");
  if (files.cert.empty()) return refused(files.key, "the key has no certificate; name its file, too");
  if (auto ok = check_readable(files.cert, false); !ok) return ok;
  if (auto ok = check_readable(files.key, true); !ok) return ok;
  if (SSL_CTX_use_certificate_chain_file(&context, files.cert.c_str()) != 1)
    return refused(files.cert, "it holds no certificate in PEM form that can be used (" + take_reason() + ")");
  if (SSL_CTX_use_PrivateKey_file(&context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const std::string why = take_reason();
    if (why.contains("mismatch"))
      return refused(files.key, "the key does not belong to the certificate in " + files.cert);
    return refused(files.key, "it holds no private key in PEM form without a password (" + why + ")");
  }
  if (SSL_CTX_check_private_key(&context) != 1)
    return refused(files.key,
                   "the key does not belong to the certificate in " + files.cert + " (" + take_reason() + ")");
  const Certificate own = describe_certificate(*SSL_CTX_get0_certificate(&context));
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  expires_at = own.not_after;
  if (now <= own.not_after) return {};
  return refused(files.cert, "the certificate '" + own.subject + "' has expired on " + utc_text(own.not_after) +
                                 "; issue a new one");
}

Status believe(SSL_CTX& context, const TlsFiles& files) {
  if (auto ok = check_readable(files.ca, false); !ok) return ok;
  if (SSL_CTX_load_verify_file(&context, files.ca.c_str()) != 1)
    return refused(files.ca, "it holds no certificate of a CA in PEM form (" + take_reason() + ")");
  X509_STORE* const store = SSL_CTX_get_cert_store(&context);
  // Believes a CA of the file even if the file lacks the CAs above it.
  unsigned long flags = X509_V_FLAG_PARTIAL_CHAIN;
  if (!files.crl.empty()) {
    if (auto ok = check_readable(files.crl, false); !ok) return ok;
    X509_LOOKUP* const lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (lookup == nullptr || X509_load_crl_file(lookup, files.crl.c_str(), X509_FILETYPE_PEM) < 1)
      return refused(files.crl, "it holds no revocation list in PEM form (" + take_reason() + ")");
    flags |= X509_V_FLAG_CRL_CHECK;
  }
  X509_STORE_set_flags(store, flags);
  SSL_CTX_set_verify_depth(&context, kChainMax);
  return {};
}

/// Sets the options that do not depend on the files.
bool set_rules(SSL_CTX& context) {
  SSL_CTX_set_default_passwd_cb(&context, no_password);
  SSL_CTX_set_max_cert_list(&context, kCertificateBytesMax);
  SSL_CTX_set_mode(&context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);  // servers give tickets, and keep nothing
  SSL_CTX_set_timeout(&context, kTicketSeconds);
  return SSL_CTX_set_min_proto_version(&context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_ciphersuites(&context, kCiphers) == 1 && SSL_CTX_set_num_tickets(&context, 1) == 1 &&
         SSL_CTX_set_session_id_context(&context, reinterpret_cast<const unsigned char*>(kSessionContext.data()),
                                        kSessionContext.size()) == 1;
}

ssl_st* new_end(SSL_CTX& context, TlsFault& fault) {
  SSL* const end = SSL_new(&context);
  if (end == nullptr) return nullptr;
  SSL_set_ex_data(end, fault_slot(), &fault);
  return end;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::open(Side side, TlsFiles files) {
  if (side == Side::client && files.ca.empty()) {
    return fail(Errc::bad_config,
                "https:// needs the CA of the server's certificate: name its file (TRIBUTARY_TLS_CA, or tls_ca in a "
                "configuration)");
  }
  if (side == Side::server && files.cert.empty())
    return fail(Errc::bad_config,
                "a server needs a certificate: name its file in tls_cert, and the file of its key in tls_key");
  if (!files.crl.empty() && files.ca.empty())
    return fail(Errc::bad_config,
                files.crl + ": a revocation list needs the CA that wrote it; name its file in tls_ca");
  std::shared_ptr<TlsContext> context(new TlsContext(side, std::move(files)));
  if (auto loaded = context->refresh(true); !loaded) return std::unexpected(loaded.error());
  return context;
}

TlsContext::Stamps TlsContext::stamps() const {
  Stamps all;
  for (const std::string* path : {&files_.ca, &files_.cert, &files_.key, &files_.crl}) {
    struct stat status{};
    if (path->empty() || ::stat(path->c_str(), &status) != 0) {
      all.emplace_back();
      continue;
    }
    all.push_back({.device = status.st_dev,
                   .inode = status.st_ino,
                   .bytes = static_cast<std::uint64_t>(status.st_size),
                   .seconds = status.st_mtim.tv_sec,
                   .nanoseconds = status.st_mtim.tv_nsec,
                   .changed_seconds = status.st_ctim.tv_sec,
                   .changed_nanoseconds = status.st_ctim.tv_nsec});
  }
  return all;
}

Result<bool> TlsContext::refresh(bool in_any_case) {
  // The stamps are taken before the files are read: a change in between is noticed at the next call.
  const Stamps now = stamps();
  {
    const std::lock_guard lock(mutex_);
    if (!in_any_case && now == tried_) return false;
    tried_ = now;
  }
  auto loaded = load();  // reads files: no handshake waits for the lock meanwhile
  if (!loaded) return std::unexpected(loaded.error());
  const std::lock_guard lock(mutex_);
  if (tried_ != now) return false;  // another thread has seen newer files, and uses those
  loaded_ = std::move(*loaded);
  return true;
}

Result<TlsContext::Loaded> TlsContext::load() const {
  ERR_clear_error();
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(side_ == Side::server ? TLS_server_method() : TLS_client_method()),
                                         SSL_CTX_free);
  if (!context || !set_rules(*context)) return fail(Errc::io, "OpenSSL cannot speak TLS 1.3: " + take_reason());
  Loaded loaded{.context = context};
  if (!files_.cert.empty() || !files_.key.empty()) {
    if (auto ok = use_own_certificate(*context, files_, loaded.expires_at); !ok) return std::unexpected(ok.error());
  }
  if (!files_.ca.empty()) {
    if (auto ok = believe(*context, files_); !ok) return std::unexpected(ok.error());
    // A server also serves callers without a certificate: they may have a token.
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, note_fault);
  }
  if (side_ == Side::server && !files_.ca.empty())
    SSL_CTX_set_client_CA_list(context.get(), SSL_load_client_CA_file(files_.ca.c_str()));
  return loaded;
}

std::shared_ptr<ssl_ctx_st> TlsContext::current() const {
  const std::lock_guard lock(mutex_);
  TRIBUTARY_ASSERT(loaded_.context != nullptr, "a context of TLS has read no files: {}", std::string_view(files_.cert));
  return loaded_.context;
}

std::int64_t TlsContext::expires_at() const {
  const std::lock_guard lock(mutex_);
  return loaded_.expires_at;
}

ssl_st* TlsContext::accept_with(ssl_ctx_st& context, TlsFault& fault) {
  return new_end(context, fault);
}

ssl_st* TlsContext::connect_with(ssl_ctx_st& context, TlsFault& fault, const std::string& host) {
  SSL* const end = new_end(context, fault);
  if (end == nullptr) return nullptr;
  // The common name in the subject does not count as the host's name.
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(end);
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool address = is_address(host);
  const int set = address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str())
                          : X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
  TRIBUTARY_ASSERT(set == 1 && SSL_get_verify_mode(end) == SSL_VERIFY_PEER, "a client would take any server for '{}'",
                   std::string_view(host));
  if (!address) (void)SSL_set_tlsext_host_name(end, host.c_str());
  return end;
}

bool TlsContext::still_believes(const ssl_st& connection) const {
  X509* const certificate = SSL_get0_peer_certificate(&connection);
  if (certificate == nullptr) return true;
  const auto context = current();
  const std::unique_ptr<X509_STORE_CTX, void (*)(X509_STORE_CTX*)> check(X509_STORE_CTX_new(), X509_STORE_CTX_free);
  if (!check || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context.get()), certificate,
                                    SSL_get_peer_cert_chain(&connection)) != 1) {
    return false;
  }
  X509_STORE_CTX_set_default(check.get(), side_ == Side::server ? "ssl_client" : "ssl_server");
  return X509_verify_cert(check.get()) == 1;
}

std::shared_ptr<const Certificate> shown_certificate(const ssl_st& connection) {
  X509* const certificate = SSL_get0_peer_certificate(&connection);
  if (certificate == nullptr || SSL_get_verify_result(&connection) != X509_V_OK) return nullptr;
  return std::make_shared<const Certificate>(describe_certificate(*certificate));
}

}  // namespace tributary::service
