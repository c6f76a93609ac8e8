#pragma once
// TLS 1.3 by files: a certificate with its key, the CA that the other side's certificate must come from, and a list of
// revoked certificates. A context is always made of the newest files that were good.
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "service-kit/tls/certificate.h"
#include "tributary/protocol/error.h"

struct ssl_ctx_st;
struct ssl_st;

namespace tributary::service {

/// Paths of PEM files; an empty path means that there is no such file.
struct TlsFiles {
  std::string ca;    // the only CAs that are believed: the system's CAs do not count
  std::string cert;  // this process's certificate, then the CAs between it and the root
  std::string key;   // the private key of `cert`; nobody but its owner and group may read the file
  std::string crl;   // revocation lists of the CAs

  [[nodiscard]] bool empty() const noexcept { return ca.empty() && cert.empty() && key.empty() && crl.empty(); }
  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

/// A fault that was found in the other side's certificate.
struct TlsFault {
  int code = 0;   // X509_V_ERR_...; 0: none was found
  int depth = 0;  // 0: its own certificate; n: the nth CA above it
  Certificate certificate;
};

/// Any thread may call it.
class TlsContext {
 public:
  enum class Side : std::uint8_t { server, client };

  /// Reads the files. A server needs `cert` and `key`, and asks callers for a certificate if there is a `ca`; a client
  /// needs `ca`. Errc::bad_config: a file cannot be read, holds something else, does not fit another one, or the own
  /// certificate has expired; the sentence names the file.
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> open(Side side, TlsFiles files);

  /// Reads the files again if one of them has changed, or `in_any_case`. Returns true if the new files are in use now.
  /// An error names the mistake in the new files, once for each change: the old files stay in use.
  [[nodiscard]] Result<bool> refresh(bool in_any_case = false);

  [[nodiscard]] std::shared_ptr<ssl_ctx_st> current() const;
  [[nodiscard]] const TlsFiles& files() const noexcept { return files_; }
  /// Returns when the own certificate expires, in seconds since 1970-01-01 UTC; 0: there is none.
  [[nodiscard]] std::int64_t expires_at() const;

  /// Makes one end of a connection; the caller frees it. It notes a fault of the other side's certificate in `fault`,
  /// which must outlive it. nullptr: no memory is left.
  [[nodiscard]] static ssl_st* accept_with(ssl_ctx_st& context, TlsFault& fault);
  /// `host`: the name or address that the server's certificate must have.
  [[nodiscard]] static ssl_st* connect_with(ssl_ctx_st& context, TlsFault& fault, const std::string& host);
  /// Says whether the certificate that the other side of this connection has shown is still good by the current files:
  /// they may have come after the handshake. True if that side has shown none.
  [[nodiscard]] bool still_believes(const ssl_st& connection) const;

 private:
  /// Facts about a file that change when somebody writes it, or changes who may read it.
  struct Stamp {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::int64_t seconds = 0, nanoseconds = 0;                  // time of the last change of its bytes
    std::int64_t changed_seconds = 0, changed_nanoseconds = 0;  // time of the last change of its bytes, owner or mode
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  using Stamps = std::vector<Stamp>;
  struct Loaded {
    std::shared_ptr<ssl_ctx_st> context;
    std::int64_t expires_at = 0;
  };

  TlsContext(Side side, TlsFiles files) : side_(side), files_(std::move(files)) {}
  [[nodiscard]] Stamps stamps() const;
  [[nodiscard]] Result<Loaded> load() const;

  const Side side_;
  const TlsFiles files_;
  mutable std::mutex mutex_;  // guards everything below
  Loaded loaded_;
  Stamps tried_;  // stamps of the files that were read last, good or not
};

/// Returns the certificate that the other side has shown and that was found good; null: it has shown none.
[[nodiscard]] std::shared_ptr<const Certificate> shown_certificate(const ssl_st& connection);

}  // namespace tributary::service
