//! Memory that a process no longer needs. Knows no runs.

/// Gives back what was freed, and the pages of the program that were only needed to get here. The definition of ten
/// thousand steps takes several times the room of what becomes of it, and reading it walks through most of the
/// program; both would be kept for the hours in which a run only waits for its agents.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "bindings")]
pub fn give_back() {
    give_back_heap();
    for (begin, end) in untouched_code(&std::fs::read_to_string("/proc/self/smaps").unwrap_or_default()) {
        // SAFETY: the range is a mapping of the program's own file that can be executed and not written, and no page
        // of it differs from the file. What is needed again is read from there, unchanged.
        unsafe {
            libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_DONTNEED);
        }
    }
}

/// Threads share a few places to allocate from. With one for each of many threads, every one keeps room for the most
/// that a thread of its ever needed, and an engine with a thousand agents has a thousand threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "bindings")]
pub fn allocate_together() {
    const PLACES: libc::c_int = 2;
    // SAFETY: it takes no pointer and may be called at any time from any thread.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, PLACES);
    }
}

/// Gives back what was freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "bindings")]
pub fn give_back_heap() {
    // SAFETY: it takes no pointer and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives back what this thread needed of its stack to get here, before it waits for long. Not for the main thread.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "bindings")]
#[inline(never)]
pub fn give_back_stack() {
    /// What the calls below may need themselves.
    const MARGIN: usize = 8 * 1024;
    let own_frame = 0_u8;
    let here = std::ptr::from_ref(&own_frame) as usize;
    let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are filled in before they are read, and destroyed once. The range ends a margin below this
    // frame and begins at the end of this thread's own stack, which grows downwards: nothing in it is in use. What is
    // needed again is there as zeros.
    unsafe {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return;
        }
        let known = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(0);
        let begin = lowest as usize;
        if !known || page == 0 || !(begin..begin + size).contains(&here) {
            return;
        }
        let end = here.saturating_sub(MARGIN) / page * page;
        if end > begin {
            libc::madvise(lowest, end - begin, libc::MADV_DONTNEED);
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
mod elsewhere {
    pub fn give_back() {}
    pub fn allocate_together() {}
    pub fn give_back_heap() {}
    pub fn give_back_stack() {}
}
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub use elsewhere::{allocate_together, give_back, give_back_heap, give_back_stack};

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

    /// What it was called from is as it was, and what was used below is not resident any more.
    #[test]
    fn a_thread_goes_on_after_its_stack_was_given_back() {
        fn deep(depth: usize) -> usize {
            let room = std::hint::black_box([depth as u8; 1024]);
            if depth == 0 { 0 } else { deep(depth - 1) + usize::from(room[0] == depth as u8) }
        }
        let resident = || {
            let own = 0_u8;
            let here = std::ptr::from_ref(&own) as usize;
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let mut inside = false;
            for line in smaps.lines() {
                let range = line.split(' ').next().and_then(|word| word.split_once('-'));
                let address = |text| usize::from_str_radix(text, 16).ok();
                if let Some((begin, end)) = range.and_then(|(a, b)| address(a).zip(address(b))) {
                    inside = (begin..end).contains(&here);
                } else if inside && let Some(size) = line.strip_prefix("Rss:") {
                    return size.trim().trim_end_matches(" kB").parse::<usize>().unwrap();
                }
            }
            panic!("no stack in {smaps}");
        };
        let work = move || {
            let kept = std::hint::black_box([7_u8; 4096]);
            assert_eq!(deep(400), 400);
            let before = resident();
            give_back_stack();
            let after = resident();
            assert!(before > 400 && after < before / 2, "{before} kB, then {after} kB");
            assert_eq!(deep(400), 400);
            kept.iter().map(|byte| usize::from(*byte)).sum::<usize>()
        };
        let thread = std::thread::Builder::new().stack_size(4 * 1024 * 1024).spawn(work).unwrap();
        assert_eq!(thread.join().unwrap(), 7 * 4096);
    }
}
