#pragma once
// Client certificates as proofs: a file says which identity each certificate stands for, by its subject or by one of
// its alternative names.
//
//   - san: "DNS:leaf-a.example"            # or subject: "CN=leaf-a,O=Physics", as `openssl x509 -nameopt RFC2253`
//     role: aggregator
//   - san: "URI:spiffe://example/physics"
//     role: tenant
//     tenant: physics
//     name: alice                          # left out: the text behind DNS:, URI:, IP: or email:, or behind CN=
//     job: train                           # left out: any job
//     scopes: [read, groups]               # left out: all
//   - san: "DNS:*.leafs.example"           # one label in place of the star; the identity has the certificate's own name
//     role: aggregator
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "service-kit/tls/certificate.h"
#include "tree-manager/identity/authenticator.h"

namespace tributary::manager {

class CertificateIdentities {
 public:
  static constexpr std::size_t kEntriesMax = 65536;

  /// Without entries no certificate proves an identity.
  CertificateIdentities() = default;
  /// Errc::bad_config names file, line and the accepted values.
  [[nodiscard]] static Result<CertificateIdentities> parse(const std::string& yaml, const std::string& file);
  /// Reads the file; an empty path means that there is none.
  [[nodiscard]] static Result<CertificateIdentities> load(const std::string& path);

  /// Returns the identity of a certificate that TLS found good, by its subject, else by its first alternative name.
  [[nodiscard]] Proof look(const service::Certificate& certificate) const;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  std::map<std::string, Identity> entries_;  // by "subject:..." or by alternative name
};

/// The identities in use, which a reload replaces. Any thread may call it.
class LiveCertificates {
 public:
  explicit LiveCertificates(CertificateIdentities identities) { use(std::move(identities)); }
  [[nodiscard]] Proof look(const service::Certificate& certificate) const { return now_.load()->look(certificate); }
  void use(CertificateIdentities identities) {
    now_.store(std::make_shared<const CertificateIdentities>(std::move(identities)));
  }

 private:
  std::atomic<std::shared_ptr<const CertificateIdentities>> now_;
};

}  // namespace tributary::manager
