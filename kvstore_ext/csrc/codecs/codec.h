// How a slice's gradient is made small on its way to the server, and the sum on its way back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codecs/method_options.h"
#include "support/buffer.h"
#include "support/random.h"

namespace kvstore_ext {

class KeyEncoder;

// One method with its options: pure functions, the same object for all slices of all keys, on
// workers and servers, which do not know which one they run. Thread-safe. All numbers are float32;
// other types are converted outside. Sizes are in elements of the slice.
class Codec : public std::enable_shared_from_this<Codec> {
 public:
  virtual ~Codec() = default;

  // By what all slices of a key are scaled, from the key's whole gradient; 0 where the method does
  // not scale keys. Not a number where the gradient has a value that is not finite.
  virtual float Scaler(const float* values, size_t elements) const;

  // Whether all workers must encode with the largest of their scalers.
  virtual bool shares_scaler() const { return false; }

  // Whether what an encoding leaves out is added to the next round's values, at the worker and,
  // where sums are encoded with loss, at the server.
  virtual bool error_feedback() const { return false; }

  // The values as they travel. Precondition: they are finite, and the scaler is at least theirs.
  virtual Buffer Encode(const float* values, size_t elements, float scaler,
                        const Draws& draws) const = 0;

  // The same where workers share a scaler; `limit` is the one that this worker found for the key.
  virtual Buffer EncodeClipped(const float* values, size_t elements, float limit, float scaler,
                               const Draws& draws) const;

  // Throws std::invalid_argument for bytes that are no encoding of so many elements. They come from
  // the network, and what passes changes a sum.
  virtual void Check(size_t elements, const Buffer& bytes) const;

  // sum[i] += what the bytes say of element i. Throws as Check, but may have changed the sum then.
  virtual void AddTo(float* sum, size_t elements, const Buffer& bytes) const = 0;

  // The scaler with which the bytes were encoded; 0 where there is none.
  virtual float ScalerOf(const Buffer& bytes) const;

  // Whether sums are encoded with loss.
  virtual bool sums_lose() const { return true; }

  // Whether a sum is a vote, of which the size says nothing.
  virtual bool sums_are_votes() const { return false; }

  // The sum over all workers as it travels back; a buffer without data where the sum had better
  // travel as it is. The scaler is the workers'.
  virtual Buffer EncodeSum(const float* sum, size_t elements, float scaler,
                           const Draws& draws) const;

  // out[i] = what the bytes, made by EncodeSum, say of element i. Throws as AddTo.
  virtual void DecodeSum(float* out, size_t elements, const Buffer& bytes) const;

  // Of the random numbers, for Draws.
  virtual uint64_t seed() const { return 0; }

  // How many bytes an element takes on the way that needs more: a slice's size follows from it.
  virtual double bytes_per_element() const = 0;

  // Slices begin at multiples of this many elements.
  virtual size_t alignment() const { return 1; }

  // What encodes a key of so many elements at a worker, and shares this codec. Precondition: a
  // shared pointer owns it.
  virtual std::unique_ptr<KeyEncoder> MakeEncoder(size_t elements) const;
};

// What a codec's .cc declares of its method, for codec_list.cc.
struct CodecMethod {
  const char* name;
  std::vector<MethodOption> options;
  std::shared_ptr<const Codec> (*make)(const MethodValues& values, int workers);
};

// The codec that a specification asks for (method_options.h), for sums over so many workers. Throws
// std::invalid_argument for a method that is not in the list, and as MethodValues.
std::shared_ptr<const Codec> MakeCodec(const std::string& specification, int workers);

}  // namespace kvstore_ext
