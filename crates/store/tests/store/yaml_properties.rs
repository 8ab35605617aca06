//! Property test: every state is restored unchanged.

use paceline_store::Yaml;
use proptest::prelude::*;

use super::states::{NOW, state};
use super::yaml::file;
use paceline_testing::full::full_or;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(full_or(256, 64)))]

    #[test]
    fn written_state_is_restored_unchanged(state in state()) {
        let (_folder, path) = file();
        Yaml::replace(&path, &state, NOW, None).unwrap();
        prop_assert_eq!(Yaml::peek(&path, NOW, None).unwrap(), state);
    }
}
