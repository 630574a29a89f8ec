//! The layouts of SCSI and iSCSI: conversion between bytes and meaning, and nothing else.
//!
//! `parse` turns bytes into a meaning or a reject; `emit` is its inverse. Nothing here keeps state, allocates
//! more than it returns, or panics on bytes from outside.

pub mod iscsi;
pub mod scsi;
