// A job of its own: what ps-lite's processes say to each other is sealed with the job's key.
//
// Read in this order: slots, zeromq, job_sockets and curve_handshake (who may connect),
// message_cipher and sealed_messages (what is sent), tally and strangers (who was refused); for
// every job: pslite_meta, expected_messages, early_barriers, foreign_messages (what ps-lite does
// not get to read). This room knows no message of the lane: MXNet's own store and ps-lite's
// commands are sealed likewise.
#pragma once

#include <string>
#include <vector>

namespace kvstore_ext {

// Has the libmxnet.so at `path`, which is loaded, end a connection by which anybody could write
// into this process's memory, and keep from ps-lite what it cannot read. For every process, with a
// key or without one; a library in which a place is not found may have another ZeroMQ, and stays as
// it is there: returns what is missing, for people. Call it before ps-lite starts.
std::vector<std::string> Harden(const std::string& path);

// Has the libmxnet.so at `path`, which is loaded, seal all it sends and refuse what is not sealed.
// `secret`, 32 bytes, is that of the job's sockets. Sockets that are there already stay open to
// all, so call it before ps-lite starts. Returns the name of the library that has the cipher. Later
// calls do nothing with the same secret, and throw std::logic_error with another.
//
// Throws std::runtime_error where anything that it takes is missing; then nothing is changed, and
// the process must not go on: it would say everything in the open.
std::string Encrypt(const std::string& path, const std::string& secret);

// Whether this host has the cipher: returns the name of its library, and throws std::runtime_error
// where there is none. Nothing is changed.
std::string CipherLibrary();

}  // namespace kvstore_ext
