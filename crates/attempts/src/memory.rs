//! Memory that a process no longer needs. Knows no runs.

/// Gives back what was freed, and the pages of the program that were only needed to get here. The definition of ten
/// thousand steps takes several times the room of what becomes of it, and reading it walks through most of the
/// program; both would be kept for the hours in which a run only waits for its agents.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "bindings")]
pub fn give_back() {
    // SAFETY: it takes no pointer and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
    for (begin, end) in untouched_code(&std::fs::read_to_string("/proc/self/smaps").unwrap_or_default()) {
        // SAFETY: the range is a mapping of the program's own file that can be executed and not written, and no page
        // of it differs from the file. What is needed again is read from there, unchanged.
        unsafe {
            libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_DONTNEED);
        }
    }
}

/// Mappings of files that can be executed, cannot be written, and of which no page was ever changed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn untouched_code(smaps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if first == "Anonymous:" {
            found.extend(candidate.take().filter(|_| words.next() == Some("0")));
        } else if let Some((begin, end)) = first.split_once('-') {
            let of_a_file =
                words.next() == Some("r-xp") && words.nth(3).is_some_and(|path| path.starts_with('/'));
            let address = |text| usize::from_str_radix(text, 16).ok();
            candidate = address(begin).zip(address(end)).filter(|_| of_a_file);
        }
    }
    found
}

/// Other allocators do it by themselves, or cannot.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn only_code_that_nobody_changed_is_given_back() {
        let smaps = "\
55e0-55f0 r--p 00000000 fe:00 12 /bin/own
Rss: 4 kB
Anonymous: 0 kB
55f0-5600 r-xp 00001000 fe:00 12 /bin/own
Rss: 4 kB
Anonymous:             0 kB
VmFlags: rd ex
5600-5610 r-xp 00002000 fe:00 12 /bin/patched
Anonymous: 4 kB
5610-5620 rw-p 00003000 fe:00 12 /bin/own
Anonymous: 0 kB
7ff0-7ff8 r-xp 00000000 00:00 0 [vdso]
Anonymous: 0 kB
7ff8-7ffa r-xp 00000000 00:00 0
Anonymous: 0 kB
";
        assert_eq!(untouched_code(smaps), [(0x55f0, 0x5600)]);
    }

    #[test]
    fn the_program_goes_on_after_its_code_was_given_back() {
        give_back();
        assert_eq!((1..=10).sum::<u32>(), 55);
    }
}
