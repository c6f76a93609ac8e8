#include "service-kit/tls/tls_words.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace tributary::service {
namespace {

std::string certificate_words(const TlsFault& fault) {
  return (fault.depth == 0 ? "its certificate '" : "its CA's certificate '") + fault.certificate.subject + "'";
}

std::string names_words(const Certificate& certificate) {
  std::string list;
  for (const std::string& name : certificate.names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "no host at all" : list;
}

std::string foreign_words(const TlsFault& fault, const TlsFiles& files) {
  return certificate_words(fault) + " comes from '" + fault.certificate.issuer + "', which is no CA in " + files.ca +
         "; name the file of the right CA there, or issue the certificate from that CA";
}

std::string own_words(const TlsFiles& files) {
  return files.cert.empty() ? "this side's certificate, and there is none" : "the certificate in " + files.cert;
}

/// Returns an empty text if the code is no alert about this side's certificate.
std::string alert_words(int reason, const TlsFiles& files) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the other side refuses " + own_words(files) + ": it has expired; issue a new one";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      return "the other side refuses " + own_words(files) + ": it was revoked; issue a new one";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the other side refuses " + own_words(files) + ": it comes from a CA that the other side does not believe";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return "the other side refuses " + own_words(files) +
             ": it is not valid yet, has another name, or is not for this use; the other side's message says more";
    default:
      return {};
  }
}

}  // namespace

std::string fault_words(const TlsFault& fault, const std::string& host, const TlsFiles& files) {
  const Certificate& shown = fault.certificate;
  switch (fault.code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return certificate_words(fault) + " has expired on " + utc_text(shown.not_after) +
             "; issue a new one, or correct this host's clock";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return certificate_words(fault) + " is not valid before " + utc_text(shown.not_before) +
             "; compare the clocks of both hosts";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return foreign_words(fault, files);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return certificate_words(fault) + " is for " + names_words(shown) + ", and not for '" + host +
             "'; use a name of the certificate in the URL, or issue a certificate with this name";
    case X509_V_ERR_CERT_REVOKED:
      return certificate_words(fault) + " (serial number " + shown.serial + ") was revoked, says " + files.crl +
             "; issue a new one";
    case X509_V_ERR_UNABLE_TO_GET_CRL:
      return files.crl + " has no revocation list of '" + shown.issuer + "', from which " + certificate_words(fault) +
             " comes; add that CA's list";
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_NOT_YET_VALID:
      return "the revocation list of '" + shown.issuer + "' in " + files.crl +
             (fault.code == X509_V_ERR_CRL_HAS_EXPIRED ? " has expired" : " is not valid yet") +
             "; put the CA's newest list there";
    case X509_V_ERR_INVALID_PURPOSE:
      return certificate_words(fault) +
             " is not for this use; issue it with extendedKeyUsage serverAuth for a server, clientAuth for a client";
    default:
      return certificate_words(fault) + " is no good: " + X509_verify_cert_error_string(fault.code);
  }
}

std::string failure_words(const TlsFault& fault, int code, const std::string& message, const std::string& host,
                          const TlsFiles& files) {
  if (fault.code != 0) return fault_words(fault, host, files);
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(code));
  if (std::string words = alert_words(reason, files); !words.empty()) return words;
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG)
    return "the other side speaks no TLS; write http:// if that is meant";
  if (reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || reason == SSL_R_UNSUPPORTED_PROTOCOL)
    return "the other side does not speak TLS 1.3";
  return message;
}

bool is_plain_http(int code) noexcept {
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(code));
  return reason == SSL_R_HTTP_REQUEST;
}

}  // namespace tributary::service
