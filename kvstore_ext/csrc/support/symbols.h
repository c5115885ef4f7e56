// Functions of libraries that are found at run time.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace kvstore_ext {

// Stores the address of a library's function; throws std::runtime_error where it has none.
// `needed` says what to install instead.
template <typename Function>
void Bind(void* library, const std::string& name, const char* symbol, Function** function,
          const std::string& needed = "") {
  *function = reinterpret_cast<Function*>(dlsym(library, symbol));
  if (*function == nullptr) throw std::runtime_error(name + " has no " + symbol + needed);
}

}  // namespace kvstore_ext
