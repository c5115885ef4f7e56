// The places through which a loaded library calls functions: they can be made to lead elsewhere.
#pragma once

#include <link.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/symbols.h"

namespace kvstore_ext {

// The slots of one library: of its procedure linkage table, and of its tables of virtual functions.
//
// Rewriting them changes what this library calls, and nobody else: another copy of ZeroMQ in the
// same process, that of a notebook say, is left alone.
class Slots {
 public:
  // `library` is a handle of dlopen's, which must stay open.
  explicit Slots(void* library);

  // Notes that the library is to call `function` where it calls `symbol`, and stores at `original`
  // what that is. Throws std::runtime_error where the library has no such function.
  template <typename Function>
  void Replace(const std::string& symbol, Function* function, Function** original) {
    *original = reinterpret_cast<Function*>(Note(symbol, reinterpret_cast<void*>(function)));
  }

  // Stores at `function` the library's own of this name. Throws std::runtime_error where it has
  // none.
  template <typename Function>
  void Find(const char* symbol, Function** function) const {
    Bind(library_, "libmxnet.so", symbol, function);
  }

  // Rewrites what has been noted: all of it, or nothing. Throws std::runtime_error unless each
  // function is called through one slot exactly.
  void Write() const;

 private:
  void* Note(const std::string& symbol, void* function);
  std::map<std::string, std::vector<void**>> FindNoted() const;

  void* const library_;
  const link_map* map_ = nullptr;
  std::map<std::string, void*, std::less<>> replacements_;
};

}  // namespace kvstore_ext
