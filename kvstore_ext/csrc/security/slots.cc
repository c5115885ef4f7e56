#include "security/slots.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace kvstore_ext {
namespace {

// What the dynamic linker is told of a library's relocations.
struct Relocations {
  explicit Relocations(const link_map& map) {
    for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
      const auto pointer = entry->d_un.d_ptr;
      const auto size = entry->d_un.d_val / sizeof(ElfW(Rela));
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(pointer);
      if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(pointer);
      if (entry->d_tag == DT_RELA) data = reinterpret_cast<const ElfW(Rela)*>(pointer);
      if (entry->d_tag == DT_RELASZ) data_count = size;
      if (entry->d_tag == DT_JMPREL) calls = reinterpret_cast<const ElfW(Rela)*>(pointer);
      if (entry->d_tag == DT_PLTRELSZ) call_count = size;
    }
  }

  const char* Name(const ElfW(Rela) & relocation) const {
    return names + symbols[ELF64_R_SYM(relocation.r_info)].st_name;
  }

  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * data = nullptr;
  const ElfW(Rela) * calls = nullptr;
  size_t data_count = 0;
  size_t call_count = 0;
};

struct Protected {
  ElfW(Addr) library;
  ElfW(Addr) begin;
  ElfW(Addr) end;
};

// Finds what the linker has made read-only of the library whose addresses begin at `library`.
int FindProtected(dl_phdr_info* info, size_t, void* wanted) {
  auto* found = static_cast<Protected*>(wanted);
  if (info->dlpi_addr != found->library) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & header = info->dlpi_phdr[i];
    if (header.p_type != PT_GNU_RELRO) continue;
    found->begin = found->library + header.p_vaddr;
    found->end = found->begin + header.p_memsz;
  }
  return 1;
}

void Allow(void** slot, int access) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(slot) / page * page;
  if (mprotect(reinterpret_cast<void*>(address), page, access) != 0) {
    throw std::runtime_error(std::string("libmxnet.so's tables cannot be changed: ") +
                             std::strerror(errno));
  }
}

}  // namespace

Slots::Slots(void* library) : library_(library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
    throw std::runtime_error(std::string("libmxnet.so's tables cannot be found: ") + dlerror());
  }
  map_ = map;
}

void* Slots::Note(const std::string& symbol, void* function) {
  void (*original)() = nullptr;
  Find(symbol.c_str(), &original);
  replacements_[symbol] = function;
  return reinterpret_cast<void*>(original);
}

std::map<std::string, std::vector<void**>> Slots::FindNoted() const {
  const Relocations relocations(*map_);
  std::map<std::string, std::vector<void**>> found;
  const auto look = [&](const ElfW(Rela)* begin, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (ELF64_R_SYM(begin[i].r_info) == 0) continue;
      const auto replacement = replacements_.find(relocations.Name(begin[i]));
      if (replacement == replacements_.end()) continue;
      found[replacement->first].push_back(
          reinterpret_cast<void**>(map_->l_addr + begin[i].r_offset));
    }
  };
  look(relocations.data, relocations.data_count);
  look(relocations.calls, relocations.call_count);
  return found;
}

void Slots::Write() const {
  auto found = FindNoted();
  for (const auto& [symbol, function] : replacements_) {
    const size_t count = found[symbol].size();
    if (count == 1) continue;
    throw std::runtime_error("libmxnet.so calls " + symbol + " through " + std::to_string(count) +
                             " slots; it must be 1");
  }
  Protected relro{map_->l_addr, 0, 0};
  dl_iterate_phdr(&FindProtected, &relro);
  std::vector<void**> locked;
  for (const auto& [symbol, slots] : found) {
    const auto address = reinterpret_cast<ElfW(Addr)>(slots.front());
    if (address >= relro.begin && address < relro.end) locked.push_back(slots.front());
  }
  for (void** slot : locked) Allow(slot, PROT_READ | PROT_WRITE);
  for (const auto& [symbol, function] : replacements_) {
    __atomic_store_n(found[symbol].front(), function, __ATOMIC_RELEASE);
  }
  for (void** slot : locked) Allow(slot, PROT_READ);
}

}  // namespace kvstore_ext
